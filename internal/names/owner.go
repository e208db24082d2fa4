package names

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OwnerLabels lead from an object in the super cluster to its VirtualCluster.
func OwnerLabels(vc metav1.Object) map[string]string {
	return map[string]string{VCName: vc.GetName(), VCNamespace: vc.GetNamespace()}
}

// OwnerAnnotations say which VirtualCluster it is, of all that had its name.
func OwnerAnnotations(vc metav1.Object) map[string]string {
	return map[string]string{VCUID: string(vc.GetUID())}
}
