package kinds

// ofPlatform is why kinds are refused.
const ofPlatform = "its objects have an effect in the whole super cluster, and are the platform's"

// API groups with kinds that are not served.
const (
	devicesGroup = "resource.k8s.io"
	flowGroup    = "flowcontrol.apiserver.k8s.io"
	storageGroup = "storage.k8s.io"
	tokensGroup  = "authentication.k8s.io"
)

// unservedKinds returns the kinds that are refused.
func unservedKinds() []Kind {
	return unservedAs(Refused, ofPlatform, refused())
}

// unservedAs sets the class of kinds, and why they are not served.
func unservedAs(class Class, reason string, kinds []Kind) []Kind {
	for i := range kinds {
		kinds[i].Class, kinds[i].Reason = class, reason
	}
	return kinds
}

func refused() []Kind {
	return []Kind{
		{Resource: "bindings", Kind: "Binding"},
		{Resource: "componentstatuses", Kind: "ComponentStatus"},
		{Group: certificatesGroup, Resource: "clustertrustbundles", Kind: "ClusterTrustBundle"},
		{
			Group: certificatesGroup, Resource: "podcertificaterequests", Kind: "PodCertificateRequest",
			Subresources: withStatus,
		},
		{Group: devicesGroup, Resource: "devicetaintrules", Kind: "DeviceTaintRule", Subresources: withStatus},
	}
}
