package virtualcluster

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// withRange returns a VirtualCluster that was given a part of the addresses.
func withRange(name string, uid types.UID, part string) tenancyv1alpha1.VirtualCluster {
	vc := tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid}}
	vc.Status.ServiceCIDR = part
	return vc
}

// TestAllotments: no part is given again that the cache does not show yet, and
// everything is listed around the cache only once.
func TestAllotments(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	red, green := withRange("red", "1", "10.64.0.0/22"), withRange("green", "2", "10.64.4.0/22")
	lists, failure := 0, errors.New("down")
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&red, &green).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if lists++; lists == 1 {
				return failure
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	var a allotments
	expect := func(what string, cached []tenancyv1alpha1.VirtualCluster, want ...string) {
		t.Helper()
		parts, err := a.besides(t.Context(), server, cached)
		got := make([]string, 0, len(parts))
		for _, part := range slices.SortedFunc(slices.Values(parts), netip.Prefix.Compare) {
			got = append(got, part.String())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
		}
	}

	if _, err := a.besides(t.Context(), server, nil); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	expect("the cache is empty", nil, "10.64.0.0/22", "10.64.4.0/22")
	expect("the cache shows one without its part", []tenancyv1alpha1.VirtualCluster{withRange("red", "1", ""), green}, "10.64.0.0/22")
	blue := withRange("blue", "3", "10.64.8.0/22")
	if err := server.Create(t.Context(), &blue); err != nil {
		t.Fatal(err)
	}
	a.add(&blue)
	expect("one was given just now", []tenancyv1alpha1.VirtualCluster{red, green}, "10.64.8.0/22")
	if err := server.Delete(t.Context(), &blue); err != nil {
		t.Fatal(err)
	}
	expect("it was deleted", []tenancyv1alpha1.VirtualCluster{red, green})
	again := withRange("blue", "4", "")
	if err := server.Create(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	a.add(&blue)
	expect("another one has its name", []tenancyv1alpha1.VirtualCluster{red, green})
	second := withRange("green", "2", "10.64.4.0/22")
	second.Status.SecondaryServiceCIDR = "fd00:64::/118"
	a.add(&second)
	expect("one was given a second part just now", []tenancyv1alpha1.VirtualCluster{red, green}, "10.64.4.0/22", "fd00:64::/118")
	expect("the cache shows it", []tenancyv1alpha1.VirtualCluster{red, second})
	if lists != 2 {
		t.Errorf("%d lists around the cache", lists)
	}
}
