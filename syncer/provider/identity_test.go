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

// saying is a tenant's apiserver whose kube-system has this UID, at this
// revision, or that fails.
type saying struct {
	client.Client
	uid      types.UID
	revision string
	err      error
}

func (s saying) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	if asked.FieldSelector == nil || asked.FieldSelector.String() != "metadata.name=kube-system" {
		return errors.New("a request for more than necessary")
	}
	namespaces := list.(*corev1.NamespaceList)
	namespaces.ResourceVersion = s.revision
	if s.uid != "" {
		namespaces.Items = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: s.uid}}}
	}
	return s.err
}

func TestVerify(t *testing.T) {
	for name, tc := range map[string]struct {
		says            saying
		fails, replaced bool
	}{
		"the same":                        {saying{uid: "a", revision: "1000"}, false, false},
		"the same, later":                 {saying{uid: "a", revision: "1001"}, false, false},
		"an earlier state":                {saying{uid: "a", revision: "999"}, true, true},
		"another":                         {saying{uid: "b", revision: "2000"}, true, true},
		"no kube-system yet":              {saying{revision: "7"}, true, true},
		"an invalid revision":             {saying{uid: "a", revision: "x"}, false, false},
		"no answer":                       {saying{err: errors.New("connection refused")}, true, false},
		"an answer that it is overloaded": {saying{err: apierrors.NewTooManyRequests("later", 1)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			changes := 0
			c := &Cluster{client: tc.says, uid: "a", health: &health{}, changed: func() { changes++ }, reopened: silent()}
			open(t, c.reopened, "/api/v1/namespaces?watch=true&resourceVersion=1000")
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

func TestRemember(t *testing.T) {
	for name, tc := range map[string]struct {
		says  saying
		fails bool
	}{
		"a cluster":              {saying{uid: "a"}, false},
		"one that has no name":   {saying{}, true},
		"one that cannot answer": {saying{uid: "a", err: errors.New("connection refused")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{client: tc.says}
			if err := c.remember(t.Context()); (err != nil) != tc.fails || err == nil && c.uid != "a" {
				t.Errorf("got %v, UID %q", err, c.uid)
			}
		})
	}
}

// patched records writes to the super cluster.
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
		"a write that fails":               {known: "", fails: errors.New("no"), writes: 1},
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

// TestErrorsOfTheTransportAreNoIdentity checks that the answer of a proxy in
// front of the tenant's apiserver is not its identity.
func TestErrorsOfTheTransportAreNoIdentity(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadGateway, http.StatusTooManyRequests} {
		err := apierrors.NewGenericServerResponse(status, "get", schema.GroupResource{}, "kube-system", "", 0, true)
		c := &Cluster{client: saying{err: err}, uid: "a", reopened: silent(), changed: func() { t.Error("told of a change") }}
		if err := c.Verify(t.Context()); err == nil || c.replaced.Load() {
			t.Errorf("status %d: %v, replaced %t", status, err, c.replaced.Load())
		}
	}
}
