package hosted

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func TestCheckClients(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "red", UID: "uid-of-red"}}
	type data map[string][]byte
	for name, c := range map[string]struct {
		annotations map[string]string
		data        data
		failed      bool
		reason      string // of the Failure, if it is one
	}{
		"Ours":     {names.OwnerAnnotations(vc), data{"admin.kubeconfig": make([]byte, maxCredential)}, false, ""},
		"TooLarge": {names.OwnerAnnotations(vc), data{"admin.kubeconfig": make([]byte, maxCredential+1)}, true, ""},
		"Another":  {map[string]string{names.VCUID: "uid-of-blue"}, nil, true, tenancyv1alpha1.ReasonNamespaceConflict},
		"Nobodys":  {nil, nil, true, tenancyv1alpha1.ReasonNamespaceConflict},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClients(vc, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}, Data: c.data})
			reason := ""
			if failure := provisioner.AsFailure(err); failure != nil {
				reason = failure.Reason
			}
			if (err != nil) != c.failed || reason != c.reason {
				t.Errorf("failed with %v, reason %q, want %q", err, reason, c.reason)
			}
		})
	}
}
