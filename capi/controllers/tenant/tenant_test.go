package tenant

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
)

func TestSpecify(t *testing.T) {
	for name, c := range map[string]struct {
		existing tenancyv1alpha1.VirtualClusterSpec
		cidrs    []string
		want     tenancyv1alpha1.VirtualClusterSpec
		err      string
	}{
		"new": {
			want: tenancyv1alpha1.VirtualClusterSpec{KubernetesVersion: "v1.36.3", Weight: 2, PKIExpireDays: 30},
		},
		"fields of others are left": {
			existing: tenancyv1alpha1.VirtualClusterSpec{Paused: true, Weight: 9, Policy: &tenancyv1alpha1.TenantPolicy{}},
			cidrs:    []string{"10.0.0.0/24"},
			want: tenancyv1alpha1.VirtualClusterSpec{
				Paused: true, KubernetesVersion: "v1.36.3", Weight: 2, PKIExpireDays: 30, ServiceCIDR: "10.0.0.0/24",
			},
		},
		"two ranges": {
			cidrs: []string{"10.0.0.0/24", "fd00::/112"},
			want: tenancyv1alpha1.VirtualClusterSpec{
				KubernetesVersion: "v1.36.3", Weight: 2, PKIExpireDays: 30, ServiceCIDR: "10.0.0.0/24", SecondaryServiceCIDR: "fd00::/112",
			},
		},
		"three ranges": {cidrs: []string{"10.0.0.0/24", "fd00::/112", "fd01::/112"}, err: "a tenant has one of each IP family"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "red"}}
			cluster.Spec.ClusterNetwork.Services.CIDRBlocks = c.cidrs
			controlPlane := &controlplanev1.NestedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "red-1"}}
			controlPlane.Spec.Version, controlPlane.Spec.PKIExpireDays = "1.36.3", 30
			infrastructure := &infrav1.NestedCluster{Spec: infrav1.NestedClusterSpec{Weight: 2}}
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Name: "red"}, Spec: c.existing}
			err := Specify(vc, cluster, controlPlane, infrastructure)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, vc.Spec); diff != "" {
				t.Error(diff)
			}
			if !IsMadeBy(vc, controlPlane) {
				t.Error("it does not belong to the control plane")
			}
		})
	}
}

func TestIsMadeBy(t *testing.T) {
	for name, c := range map[string]struct {
		vcName, cluster, madeBy, recorded string
		want                              bool
	}{
		"of this one":          {"red", "red", "red-1", "u", true},
		"not recorded yet":     {"red", "red", "red-1", "", true},
		"another one since":    {"red", "red", "red-1", "v", false},
		"of another one":       {"red", "red", "red-2", "u", false},
		"released":             {"red", "", "red-1", "u", false},
		"of another Cluster":   {"red", "blue", "red-1", "u", false},
		"of a Cluster no more": {"", "", "red-1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
				Name: c.vcName, UID: types.UID("u"),
				Labels:      map[string]string{clusterv1.ClusterNameLabel: c.cluster},
				Annotations: map[string]string{ControlPlaneAnnotation: c.madeBy},
			}}
			controlPlane := &controlplanev1.NestedControlPlane{ObjectMeta: metav1.ObjectMeta{
				Name: "red-1", Annotations: map[string]string{controlplanev1.VirtualClusterUIDAnnotation: c.recorded},
			}}
			if got := IsMadeBy(vc, controlPlane); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for address, want := range map[string]controlplanev1.APIEndpoint{
		"https://127.0.0.1:6443":  {Host: "127.0.0.1", Port: 6443},
		"https://red.example.com": {Host: "red.example.com", Port: 443},
		"https://[fd00::1]:6443":  {Host: "fd00::1", Port: 6443},
		"":                        {},
		"https://":                {},
		"https://red:70000":       {},
	} {
		got, err := Endpoint(address)
		if got != want || (err == nil) != (want.Host != "") {
			t.Errorf("%q: got %v, %v", address, got, err)
		}
	}
}
