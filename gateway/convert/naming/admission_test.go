package naming_test

import (
	"testing"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// TestTextOfAdmission: the super cluster's webhooks are not the tenant's, and the
// URL of the gateway has a secret.
func TestTextOfAdmission(t *testing.T) {
	const tryAgain = "the webhooks and policies of the tenant cannot be evaluated at the moment: try again"
	for text, want := range map[string]string{
		`admission webhook "objects.converted-admission.tenancy.x-k8s.io" denied the request: admission webhook "a.example.com" denied the request: no`: `admission webhook "a.example.com" denied the request: no`,
		`Error creating: admission webhook \"custom.converted-admission.tenancy.x-k8s.io\" denied the request: no`:                                      "Error creating: no",
		`Internal error occurred: failed calling webhook "roles.converted-admission.tenancy.x-k8s.io": failed to call webhook: Post "https://gw/converted-admission/mutate/secret?timeout=30s": EOF`: "Internal error occurred: " +
			tryAgain,
		`admission webhook "a.example.com" denied the request: no`: `admission webhook "a.example.com" denied the request: no`,
	} {
		if got := (naming.Namer{Key: "team-0a1b2c-red"}).Text(text, "shop"); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}
