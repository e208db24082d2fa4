package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestRivalRegistrations: two replicas that make the registration at the same time
// may leave one phase with the secret of each. All replicas accept both.
func TestRivalRegistrations(t *testing.T) {
	ctx, super := t.Context(), fake.NewClientset()
	to := address{url: "https://gateway"}
	first, second := must(newSecret()), must(newSecret())
	r := &Registration{Super: super}
	for _, secret := range []string{first[0], second[0]} {
		if err := r.apply(ctx, to, secret); err != nil {
			t.Fatal(err)
		}
	}
	mutating := super.AdmissionregistrationV1().MutatingWebhookConfigurations()
	rival, err := mutating.Get(ctx, names.ConvertedAdmission, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rival.Webhooks {
		rival.Webhooks[i].ClientConfig.URL = new(to.url + Path + mutate + "/" + first[0])
	}
	if _, err := mutating.Update(ctx, rival, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first[0], second[0]} {
		if !(&Registration{Super: super}).Accepts(ctx, secret) {
			t.Error("a replica does not accept the secret of a phase")
		}
	}
	if (&Registration{Super: super}).Accepts(ctx, must(newSecret())[0]) || (&Registration{Super: super}).Accepts(ctx, "") {
		t.Error("a replica accepts a secret that is not registered")
	}
	if err := r.Ensure(ctx, to.url, nil); err != nil {
		t.Fatal(err)
	}
	if found, err := r.read(ctx); err != nil || len(found) != 1 || found[0] != first[0] {
		t.Errorf("after a renewal, the secrets are %v (%v)", found, err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
