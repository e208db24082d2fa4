package provider

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestProblems(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	known := problem{reason: tenancyv1alpha1.ReasonKubeconfigInvalid, message: "m", cause: errors.New("c")}
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"a known problem":      {known, tenancyv1alpha1.ReasonKubeconfigInvalid},
		"a bad certificate":    {apierrors.NewUnauthorized("who?"), tenancyv1alpha1.ReasonUnauthorized},
		"a user without right": {apierrors.NewForbidden(pods, "", errors.New("no")), tenancyv1alpha1.ReasonUnauthorized},
		"no answer":            {errors.New("dial tcp 127.0.0.1:51342: refused"), tenancyv1alpha1.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := errors.AsType[problem](asProblem(tc.err, "https://tenant"))
			if !ok || got.reason != tc.reason {
				t.Fatalf("got %+v, want reason %s", got, tc.reason)
			}
			// A message that changes with each attempt would write the
			// condition each time.
			if strings.Contains(got.message, "51342") {
				t.Errorf("the message depends on the attempt: %s", got.message)
			}
		})
	}
}
