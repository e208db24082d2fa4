package kinds

// specField is the field of objects in which the request is.
const specField = "spec"

// classes returns the kinds without an effect on the tenant's objects but by their
// names, and others that would have an effect in the whole super cluster. Those of
// the platform that it offers are shown beside the tenant's own.
func classes() []Kind {
	all := []Kind{
		{
			Group: "scheduling.k8s.io", Resource: "priorityclasses", Kind: "PriorityClass", Offered: true,
			Immutable: []string{"value", "preemptionPolicy"}, Defaults: map[string]string{"preemptionPolicy": "PreemptLowerPriority"},
		},
		{Group: "node.k8s.io", Resource: "runtimeclasses", Kind: "RuntimeClass", Offered: true, Immutable: []string{"handler"}},
		{
			Group: networkingGroup, Resource: "ingressclasses", Kind: "IngressClass", Offered: true,
			Immutable: []string{"spec.controller"},
		},
		{
			Group: storageGroup, Resource: "storageclasses", Kind: "StorageClass", Offered: true,
			Immutable: []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
			Defaults:  map[string]string{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
		},
		{
			Group: storageGroup, Resource: "volumeattributesclasses", Kind: "VolumeAttributesClass", Offered: true,
			Immutable: []string{"driverName", "parameters"},
		},
		{Group: storageGroup, Resource: "csidrivers", Kind: "CSIDriver", Offered: true},
		{Group: storageGroup, Resource: "csinodes", Kind: "CSINode"},
		{
			Group: storageGroup, Resource: "volumeattachments", Kind: "VolumeAttachment", Immutable: []string{specField},
			Subresources: withStatus,
		},
		{Group: devicesGroup, Resource: "deviceclasses", Kind: "DeviceClass", Offered: true},
		{
			Group: devicesGroup, Resource: "resourceslices", Kind: "ResourceSlice",
			Immutable: []string{"spec.driver", "spec.nodeName"},
		},
		{Group: networkingGroup, Resource: "ipaddresses", Kind: "IPAddress", Immutable: []string{specField}},
		{
			Group: networkingGroup, Resource: "servicecidrs", Kind: "ServiceCIDR", Offered: true, Immutable: []string{specField},
			Subresources: withStatus,
		},
		{Group: flowGroup, Resource: "flowschemas", Kind: "FlowSchema", Subresources: withStatus},
		{
			Group: flowGroup, Resource: "prioritylevelconfigurations", Kind: "PriorityLevelConfiguration",
			Subresources: withStatus,
		},
		{
			Group: storageGroup, Resource: "csistoragecapacities", Kind: "CSIStorageCapacity", InNamespaces: true,
			Immutable: []string{"storageClassName", "nodeTopology"},
		},
	}
	for i := range all {
		all[i].Class, all[i].Stored = Shelved, rootShelf
		if all[i].InNamespaces {
			all[i].Stored = shelf
		}
	}
	return all
}
