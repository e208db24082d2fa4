package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// sharedService returns the kind Service for a shared DNS.
func sharedService(t *testing.T) kinds.Down[*corev1.Service] {
	t.Helper()
	flows := ForSharedDNS([]kinds.Flow{Namespace(), Service()})
	if len(flows) != 2 {
		t.Fatalf("there are %d kinds", len(flows))
	}
	return kindOf[kinds.Down[*corev1.Service]](t, flows[1])
}

// TestNamesForSharedDNS: the copy of an ExternalName is a headless Service
// without endpoints, unless the policy allows the name itself.
func TestNamesForSharedDNS(t *testing.T) {
	k := sharedService(t)
	tenant := service(corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.internal", Selector: selector,
		Ports: []corev1.ServicePort{http(0)}, ExternalIPs: []string{"192.0.2.1"}, ClusterIP: "10.96.0.7",
	})
	got, err := k.Desired(under(tenancyv1alpha1.TenantPolicy{}), tenant)
	if diff := cmp.Diff(nameOnly("metadata.internal"), got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
	if got.Spec.ExternalName != "" || got.Spec.Type != corev1.ServiceTypeClusterIP || len(got.Spec.Selector)+len(got.Spec.Ports) > 0 {
		t.Errorf("components of the super cluster can use %+v", got.Spec)
	}
	tenant.Spec.ExternalIPs = nil
	got, err = k.Desired(under(tenancyv1alpha1.TenantPolicy{AllowExternalNames: true}), tenant)
	if err != nil || got.Spec.ExternalName != "metadata.internal" || isNameOnly(got) {
		t.Errorf("an allowed name is %+v, error %v", got, err)
	}
}

// TestNamesAreReplaced: a copy that gets or loses its name is another one, so
// that no endpoints and no annotation remain.
func TestNamesAreReplaced(t *testing.T) {
	k := sharedService(t)
	name, other := nameOnly("a.example"), nameOnly("b.example")
	without := service(corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone})
	for want, pair := range map[bool][2]*corev1.Service{true: {name, without}, false: {name, other}} {
		if k.Replace(pair[0], pair[1]) != want || k.Replace(pair[1], pair[0]) != want {
			t.Errorf("%v is replaced: %t", pair, !want)
		}
	}
}
