package networks

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// recordSecret returns the Secret with the records of tenant red.
func recordSecret(meta metav1.ObjectMeta) *corev1.Secret {
	meta.Namespace, meta.Name = "red", names.NetworksSecret
	return &corev1.Secret{ObjectMeta: meta}
}

// TestIsRecordOfDeleted: the copy of a tenant's Secret is never taken for
// records.
func TestIsRecordOfDeleted(t *testing.T) {
	now := new(metav1.Now())
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   bool
	}{
		"of a deleted tenant": {recordSecret(metav1.ObjectMeta{DeletionTimestamp: now}), true},
		"of a tenant":         {recordSecret(metav1.ObjectMeta{}), false},
		"a copy":              {recordSecret(metav1.ObjectMeta{DeletionTimestamp: now, Annotations: map[string]string{names.Cluster: "red"}}), false},
		"of another name":     {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "mine", DeletionTimestamp: now}}, false},
	} {
		if got := isRecordOfDeleted(tc.secret); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestTenantOf(t *testing.T) {
	secret := recordSecret(metav1.ObjectMeta{Annotations: map[string]string{names.VCName: "vc", names.VCNamespace: "team", names.VCUID: "uid"}})
	if got, want := tenantOf(secret), (plugins.Tenant{Key: "red", Name: "vc", Namespace: "team", UID: "uid"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
