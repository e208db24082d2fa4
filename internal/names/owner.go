package names

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerLabels lead from an object in the super cluster to its VirtualCluster.
func OwnerLabels(vc metav1.Object) map[string]string {
	return map[string]string{VCName: vc.GetName(), VCNamespace: vc.GetNamespace()}
}

// OwnerKey returns the key of the VirtualCluster to which labels or annotations lead;
// its parts are empty if they are not there.
func OwnerKey(leads map[string]string) types.NamespacedName {
	return types.NamespacedName{Namespace: leads[VCNamespace], Name: leads[VCName]}
}

// OwnerAnnotations say which VirtualCluster it is, of all that had its name.
func OwnerAnnotations(vc metav1.Object) map[string]string {
	return map[string]string{VCUID: string(vc.GetUID())}
}
