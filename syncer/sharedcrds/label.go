package sharedcrds

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// label gives a copy the labels of the super cluster's CRD, which operators
// read: Cluster API's find the version of a provider's contract in them. Those
// that the platform itself uses stay in the super cluster.
func label(d, system *crd) {
	for key, value := range system.Labels {
		if key != names.CRDSharingPolicy && !strings.HasPrefix(key, names.Domain+"/") {
			metav1.SetMetaDataLabel(&d.ObjectMeta, key, value)
		}
	}
}
