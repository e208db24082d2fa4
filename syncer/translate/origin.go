package translate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Origin identifies the tenant's object that an object of the super cluster is
// a copy of.
type Origin struct {
	// Cluster is the cluster key of the tenant; empty if the object does not
	// belong to a tenant.
	Cluster string
	// UID is the UID of the tenant's object.
	UID types.UID
	// Namespace is the namespace of the tenant's object; its name if it is
	// cluster-scoped, such as a namespace.
	Namespace string
}

// OriginOf reads the origin from the annotations of an object of the super
// cluster.
func OriginOf(obj metav1.Object) Origin {
	a := obj.GetAnnotations()
	return Origin{
		Cluster:   a[names.Cluster],
		UID:       types.UID(a[names.UID]),
		Namespace: a[names.Namespace],
	}
}
