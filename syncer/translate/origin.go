package translate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Origin is where an object of the super cluster came from.
type Origin struct {
	// Cluster is the cluster key of the tenant; empty if the object is no tenant's.
	Cluster string
	// UID is the tenant's object's.
	UID types.UID
	// Namespace is the tenant's object's; of one without, such as a namespace, it is the name.
	Namespace string
}

// OriginOf reads the origin from the annotations of an object of the super cluster.
func OriginOf(obj metav1.Object) Origin {
	a := obj.GetAnnotations()
	return Origin{
		Cluster:   a[names.Cluster],
		UID:       types.UID(a[names.UID]),
		Namespace: a[names.Namespace],
	}
}
