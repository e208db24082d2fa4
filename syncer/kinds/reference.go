package kinds

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reference identifies an object that another one needs.
type Reference struct {
	// Kind and Name identify the object. The kind of a custom resource includes
	// its group, such as VolumeSnapshot.snapshot.storage.k8s.io.
	Kind, Name string
	// Namespace is that in the tenant; empty for the namespace of the object
	// that refers to it.
	Namespace string
	// Required is set if the super cluster would reject the object without the
	// one that it refers to.
	Required bool
}

// KeyFor returns the key in the tenant that an object in a namespace refers to.
func (r Reference) KeyFor(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(r.Namespace, namespace), Name: r.Name}
}

// References returns the references of an object.
func References(k *Kind, obj client.Object) []Reference {
	if k.Down == nil || k.Down.References == nil {
		return nil
	}
	return k.Down.References(obj)
}
