package kinds

const crdGroup = "apiextensions.k8s.io"

// definitions returns the kind of CRDs.
func definitions() []Kind {
	return []Kind{{
		Group: crdGroup, Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Class: Prefixed,
		Rules: join(means(CRDName, "metadata.name"), means(CRDGroup, "spec.group"),
			means(ConversionClient, "spec.conversion.webhook.clientConfig")),
		Cells:        map[string]Means{"Name": CRDName},
		Subresources: withStatus,
	}}
}

// IsCRD reports whether it is the kind CustomResourceDefinition.
func (k Kind) IsCRD() bool { return k.Group == crdGroup && k.Resource == "customresourcedefinitions" }

// IsNative reports whether an API group is one of Kubernetes' own. All others are
// of CRDs.
func IsNative(group string) bool { return nativeGroups.Has(group) }

// Custom returns the kind of a tenant's custom resource. No other tenant has
// its group, so that what it holds needs no conversion.
func Custom(group, resource, kind string, namespaced bool) Kind {
	k := Kind{Group: group, Resource: resource, Kind: kind, Class: Prefixed, Subresources: withScale, fields: customFields, custom: true}
	if namespaced {
		k.Class = Placed
	}
	return k
}

// IsCustom reports whether it is the kind of a custom resource.
func (k Kind) IsCustom() bool { return k.custom }

// Deletion are the rules of the options of a deletion.
var Deletion = tree(means(APIVersion, "apiVersion"))

var customFields = tree(join(metadata, means(APIVersion, "apiVersion")))
