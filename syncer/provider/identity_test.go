package provider

import (
	"context"
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// saying is a tenant's apiserver that says that its kube-system has this UID, or fails.
type saying struct {
	client.Client
	uid types.UID
	err error
}

func (s saying) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetUID(s.uid)
	return s.err
}

func TestVerify(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, metav1.NamespaceSystem)
	for name, tc := range map[string]struct {
		says            saying
		fails, replaced bool
	}{
		"the same":                        {saying{uid: "a"}, false, false},
		"another":                         {saying{uid: "b"}, true, true},
		"one that has just begun":         {saying{err: missing}, true, true},
		"no answer":                       {saying{err: errors.New("connection refused")}, true, false},
		"an answer that it is overloaded": {saying{err: apierrors.NewTooManyRequests("later", 1)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			changes := 0
			c := &Cluster{client: tc.says, uid: "a", health: &health{}, changed: func() { changes++ }}
			for range 2 {
				if err := c.Verify(t.Context()); (err != nil) != tc.fails {
					t.Errorf("got %v, want an error: %t", err, tc.fails)
				}
			}
			if c.replaced.Load() != tc.replaced || c.Healthy() == tc.replaced {
				t.Errorf("replaced: %t, healthy: %t", c.replaced.Load(), c.Healthy())
			}
			if (changes == 1) != tc.replaced {
				t.Errorf("told of %d changes", changes)
			}
		})
	}
}

// patched notes what was written to the super cluster.
type patched struct {
	client.Client
	writes []string
	err    error
}

func (p *patched) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	p.writes = append(p.writes, obj.GetAnnotations()[names.TenantUID])
	return p.err
}

func TestRecognize(t *testing.T) {
	for name, tc := range map[string]struct {
		known, confirmed string
		fails            error // of the write
		reason           string
		writes           int
		waived           bool
	}{
		"the first":                        {known: "", writes: 1},
		"the same":                         {known: "b"},
		"another":                          {known: "a", reason: tenancyv1alpha1.ReasonIdentityChanged},
		"another that is confirmed":        {known: "a", confirmed: "b", writes: 1, waived: true},
		"another than the confirmed one":   {known: "a", confirmed: "c", reason: tenancyv1alpha1.ReasonIdentityChanged},
		"one that cannot be remembered":    {known: "", fails: errors.New("no"), writes: 1},
		"the same, of an old confirmation": {known: "b", confirmed: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			super := &patched{err: tc.fails}
			p := &Provider{super: super}
			root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.TenantUID: tc.known}}}
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{names.ConfirmIdentity: tc.confirmed},
			}}
			c := &Cluster{uid: "b"}
			err := p.recognize(t.Context(), vc, root, c)
			if why, is := errors.AsType[problem](err); is != (tc.reason != "") || why.reason != tc.reason {
				t.Errorf("got %v, want reason %q", err, tc.reason)
			}
			if tc.fails != nil && !errors.Is(err, tc.fails) {
				t.Errorf("got %v, want %v", err, tc.fails)
			}
			if len(super.writes) != tc.writes || tc.writes > 0 && super.writes[0] != "b" {
				t.Errorf("wrote %q", super.writes)
			}
			if root.Annotations[names.TenantUID] != tc.known {
				t.Error("the namespace, which is the cache's, was changed")
			}
			if _, asks := c.removal.ask(100); (asks == nil) != tc.waived {
				t.Errorf("whether what ran may go: %v, waived: %t", asks, tc.waived)
			}
		})
	}
}

// TestErrorsOfTheTransportAreNoIdentity: what a proxy before the tenant's apiserver answers says nothing of it.
func TestErrorsOfTheTransportAreNoIdentity(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadGateway, http.StatusTooManyRequests} {
		err := apierrors.NewGenericServerResponse(status, "get", schema.GroupResource{}, "kube-system", "", 0, true)
		c := &Cluster{client: saying{err: err}, uid: "a", health: &health{}, changed: func() { t.Error("told of a change") }}
		if err := c.Verify(t.Context()); err == nil || c.replaced.Load() {
			t.Errorf("status %d: %v, replaced %t", status, err, c.replaced.Load())
		}
	}
}
