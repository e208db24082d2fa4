package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// known is an index of the namespaces that were turned in a test.
type known map[[2]string]string

func (k known) TenantName(key, super string) (string, bool) {
	tenant, ok := k[[2]string{key, super}]
	return tenant, ok
}

const key = "team-0a1b2c-red"

func TestNamespace(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, tenant := range []string{"default", "a", "kube-system", long, long[:60] + "abc"} {
		index := known{}
		n := naming.Namer{Key: key, Namespaces: index}
		super, err := n.Namespace(tenant)
		if err != nil || len(validation.IsDNS1123Label(super)) > 0 {
			t.Fatalf("Namespace(%q) = %q, %v", tenant, super, err)
		}
		if _, err := n.TenantNamespace(super); err == nil {
			t.Errorf("TenantNamespace(%q) knows a namespace that is not in the index", super)
		}
		index[[2]string{key, super}] = tenant
		if back, err := n.TenantNamespace(super); err != nil || back != tenant {
			t.Errorf("TenantNamespace(%q) = %q, %v, want %q", super, back, err, tenant)
		}
		other := naming.Namer{Key: key + "-2", Namespaces: index}
		if back, err := other.TenantNamespace(super); err == nil {
			t.Errorf("the namespace of another tenant is %q", back)
		}
	}
}

func TestNamespaceOfAnInvalidName(t *testing.T) {
	for _, tenant := range []string{"", "A", "a/b", "a.b", "..", strings.Repeat("n", 64), "-a", "a%2f"} {
		if super, err := (naming.Namer{Key: key}).Namespace(tenant); err == nil {
			t.Errorf("Namespace(%q) = %q", tenant, super)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("Namespace(%q): the error shows the key: %v", tenant, err)
		}
	}
}

// TestNamespacesOfSimilarTenants: no namespace of one tenant is that of another.
func TestNamespacesOfSimilarTenants(t *testing.T) {
	seen := map[string]string{}
	for _, tenant := range [][3]string{
		{"team", "a-b", "uid-1"}, {"team-a", "b", "uid-2"}, {"team", "a", "uid-3"}, {"team", "a", "uid-4"}, {"team-a-b", "c", "uid-5"},
	} {
		n := naming.Namer{Key: names.ClusterKey(tenant[0], tenant[1], types.UID(tenant[2]))}
		for _, ns := range []string{"default", "b-default", "a-b-default", strings.Repeat("x", 63)} {
			super, err := n.Namespace(ns)
			if err != nil {
				t.Fatal(err)
			}
			if was, ok := seen[super]; ok {
				t.Errorf("%q is a namespace of both %s and %s", super, was, n.Key)
			}
			seen[super] = n.Key
		}
	}
}

func TestIsProvisionedVolume(t *testing.T) {
	for name, want := range map[string]bool{
		"pvc-6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b": true, "pvc-1": false, "data": false,
		"pvc-6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b-x": false, "": false,
	} {
		if got := (naming.Namer{}).IsProvisionedVolume(name); got != want {
			t.Errorf("IsProvisionedVolume(%q) = %t", name, got)
		}
	}
}

func TestText(t *testing.T) {
	n := naming.Namer{Key: key}
	long := strings.Repeat("n", 63)
	for _, tt := range []struct{ text, namespace, want string }{
		{`namespaces "` + key + `-shop" not found`, "", `namespaces "shop" not found`},
		{`User "vc:` + key + `" cannot list`, "shop", `User "vc:tenant" cannot list`},
		{"in " + names.SuperNamespace(key, long) + "/cm", long, "in " + long + "/cm"},
		{"nothing", "shop", "nothing"},
	} {
		if got := n.Text(tt.text, tt.namespace); got != tt.want {
			t.Errorf("Text(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzNamespace: what is turned is valid, turns back, and is never that of
// another namespace of the tenant.
func FuzzNamespace(f *testing.F) {
	f.Add("team-0a1b2c-red", "a-b", "a")
	f.Add("t-000000-"+strings.Repeat("k", 50), strings.Repeat("n", 63), strings.Repeat("n", 62)+"m")
	f.Fuzz(func(t *testing.T, key, a, b string) {
		if len(names.ValidateClusterKey(key)) > 0 {
			t.Skip("no tenant has this key")
		}
		index := known{}
		n := naming.Namer{Key: key, Namespaces: index}
		superA, errA := n.Namespace(a)
		superB, errB := n.Namespace(b)
		if errA != nil || errB != nil {
			return
		}
		if len(validation.IsDNS1123Label(superA)) > 0 || a != b && superA == superB {
			t.Errorf("%q and %q of %q are %q and %q", a, b, key, superA, superB)
		}
		index[[2]string{key, superA}] = a
		if back, err := n.TenantNamespace(superA); err != nil || back != a {
			t.Errorf("%q turns back to %q, %v", superA, back, err)
		}
	})
}
