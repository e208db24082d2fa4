package views

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEconomize(t *testing.T) {
	g := NewWithT(t)
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{}}}, Data: map[string]string{"a": "b"},
		}
	}
	secret := func(kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{Type: kind, Data: map[string][]byte{"a": {1}}}
	}
	drop := func(obj any) any {
		dropped, err := Economize(obj)
		g.Expect(err).NotTo(HaveOccurred())
		return dropped
	}
	g.Expect(drop(configMap("any"))).To(Equal(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "any"}}))
	g.Expect(drop(configMap(rootCA))).To(HaveField("Data", HaveLen(1)))
	g.Expect(drop(secret(corev1.SecretTypeOpaque))).To(HaveField("Data", BeEmpty()))
	g.Expect(drop(secret(corev1.SecretTypeServiceAccountToken))).To(HaveField("Data", HaveLen(1)))
	g.Expect(drop(secret(corev1.SecretTypeBootstrapToken))).To(HaveField("Data", HaveLen(1)))
}
