package kinds

// volumes returns the kind PersistentVolume. The tenant reads those of the super
// cluster that are bound to its claims. Its own are bound to none.
func volumes() []Kind {
	return []Kind{{
		Resource: "persistentvolumes", Kind: "PersistentVolume", Class: Shelved, Stored: rootShelf, Offered: true,
		Rules:        join(means(NamespaceName, "spec.claimRef.namespace"), means(Text, "status.message")),
		Immutable:    []string{"spec.volumeMode", "spec.csi", "spec.hostPath", "spec.local", "spec.nfs"},
		Subresources: withStatus,
	}}
}

// IsVolume reports whether it is the kind PersistentVolume.
func (k Kind) IsVolume() bool { return k.Group == "" && k.Resource == "persistentvolumes" }
