package translate

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// blue is the tenant of these tests.
var blue = Tenant{
	Key:       "team-71a1c3-blue",
	Name:      "blue",
	Namespace: "team",
	UID:       "vc-uid",
	RootUID:   "root-uid",
	Weight:    1,

	ClusterDomain: "cluster.local",
}

// long has a namespace whose name is hashed in the super cluster, and its key
// is cut there.
var (
	longNamespace = strings.Repeat("long-", 10) + "namespace"
	longKey       = strings.Repeat("k", 56) + "-71a1c3"
)

func TestNewTenant(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "team", UID: "vc-uid"},
		Spec: tenancyv1alpha1.VirtualClusterSpec{
			OpaqueMetaPrefixes:      []string{"opaque.io/"},
			TransparentMetaPrefixes: []string{"transparent.io/"},
			Weight:                  3,
		},
		Status: tenancyv1alpha1.VirtualClusterStatus{ClusterNamespace: "team-71a1c3-blue"},
	}
	want := blue
	want.Opaque, want.Transparent, want.Weight = []string{"opaque.io/"}, []string{"transparent.io/"}, 3
	if diff := cmp.Diff(want, NewTenant(vc, "root-uid"), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("tenant (-want +got):\n%s", diff)
	}
	vc.Spec.Weight = 0
	if got := NewTenant(vc, "root-uid").Weight; got != 1 {
		t.Errorf("without a weight, the weight is %d, want 1", got)
	}
}

func TestServiceAddress(t *testing.T) {
	who := NewTenant(&tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{ServiceCIDR: "10.104.16.0/20"}}, "")
	if got := who.ServiceAddress(1).String(); got != "10.104.16.1" {
		t.Errorf("the first address is %s", got)
	}
	if got := who.ServiceAddress(10).String(); got != "10.104.16.10" {
		t.Errorf("the tenth address is %s", got)
	}
	who.ServiceCIDR = netip.MustParsePrefix("10.104.16.0/29")
	if got := who.ServiceAddress(10); got.IsValid() {
		t.Errorf("of eight addresses, the tenth is %s", got)
	}
	if got := blue.ServiceAddress(1); got.IsValid() {
		t.Errorf("without addresses, the first is %s", got)
	}
}

func TestTenantSuperKey(t *testing.T) {
	tests := map[string]struct {
		key, want client.ObjectKey
	}{
		"the namespace is translated, the name kept": {
			client.ObjectKey{Namespace: "default", Name: "web"},
			client.ObjectKey{Namespace: "team-71a1c3-blue-default", Name: "web"},
		},
		"a long namespace is hashed": {
			client.ObjectKey{Namespace: longNamespace, Name: "web"},
			client.ObjectKey{Namespace: names.SuperNamespace(blue.Key, longNamespace), Name: "web"},
		},
		"cluster-scoped stays cluster-scoped": {client.ObjectKey{Name: "node"}, client.ObjectKey{Name: "node"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := blue.SuperKey(tt.key); got != tt.want {
				t.Errorf("SuperKey(%v) = %v, want %v", tt.key, got, tt.want)
			}
			if got := blue.SuperNamespace(tt.key.Namespace); got != tt.want.Namespace {
				t.Errorf("SuperNamespace(%q) = %q, want %q", tt.key.Namespace, got, tt.want.Namespace)
			}
		})
	}
}

func TestText(t *testing.T) {
	long := blue
	long.Key = longKey
	tests := map[string]struct {
		tenant     Tenant
		namespace  string
		text, want string
	}{
		"empty":                              {blue, "default", "", ""},
		"without names of the super cluster": {blue, "default", "pulling image nginx-1", "pulling image nginx-1"},
		"the namespace becomes the tenant's": {
			blue, "default",
			`pods "web" is forbidden in "team-71a1c3-blue-default": no service account team-71a1c3-blue-default/sa`,
			`pods "web" is forbidden in "default": no service account default/sa`,
		},
		"a hashed namespace becomes the tenant's": {
			blue, longNamespace,
			"no " + names.SuperNamespace(blue.Key, longNamespace) + "/web",
			"no " + longNamespace + "/web",
		},
		"a namespace whose name cut the key becomes the tenant's": {
			long, "default",
			"no " + names.SuperNamespace(longKey, "default") + "/web",
			"no default/web",
		},
		"another namespace of the tenant loses the key": {
			blue, "default", "team-71a1c3-blue-other/web", "other/web",
		},
		"a namespace that begins like the object's is not mistaken for it": {
			blue, "default", "team-71a1c3-blue-default-2/web", "default-2/web",
		},
		"the key alone becomes the tenant's name": {blue, "default", "quota of team-71a1c3-blue.", "quota of blue."},
		"the text of a cluster-scoped object": {
			blue, "", `namespaces "team-71a1c3-blue-default" of team-71a1c3-blue`, `namespaces "default" of blue`,
		},
		"a cluster-scoped object without names of the super cluster": {blue, "", "node is gone", "node is gone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.tenant.Text(tt.text, tt.namespace)
			if got != tt.want {
				t.Errorf("Text(%q, %q) =\n     %q\nwant %q", tt.text, tt.namespace, got, tt.want)
			}
			if strings.Contains(got, tt.tenant.Key) {
				t.Errorf("the tenant reads the cluster key in %q", got)
			}
		})
	}
}
