package kinds

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reference names an object that another one needs.
type Reference struct {
	// Kind and Name say which. The kind of a custom resource has its group, such as VolumeSnapshot.snapshot.storage.k8s.io.
	Kind, Name string
	// Namespace is the tenant's; empty is that of the object that refers.
	Namespace string
	// Required: without it, the super cluster would refuse the object that refers to it.
	Required bool
}

// KeyFor returns the tenant's key of what an object in a namespace refers to.
func (r Reference) KeyFor(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(r.Namespace, namespace), Name: r.Name}
}

// References are what an object refers to; none for a kind that refers to nothing.
func References(k *Kind, obj client.Object) []Reference {
	if k.Down == nil || k.Down.References == nil {
		return nil
	}
	return k.Down.References(obj)
}
