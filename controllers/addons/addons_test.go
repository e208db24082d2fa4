package addons

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func TestRender(t *testing.T) {
	const manifests = "# Two.\nkind: A\nspec: {host: {{.Host}}}\n---\nkind: B\n"
	objects, err := Render(manifests, map[string]string{"Host": "agent.example"})
	if err != nil || len(objects) != 2 || objects[1].GetKind() != "B" {
		t.Fatalf("got %v (%v)", objects, err)
	}
	if host, _, _ := unstructured.NestedString(objects[0].Object, "spec", "host"); host != "agent.example" {
		t.Errorf("got host %q", host)
	}
	if _, err := Render(manifests, map[string]string{}); err == nil {
		t.Error("a setting that is missing is no error")
	}
}

func TestVersionsDiffer(t *testing.T) {
	of := func(host string) string {
		return versionOf(&unstructured.Unstructured{Object: map[string]any{"kind": "A", "host": host}})
	}
	if first, again, other := of("a"), of("a"), of("b"); first != again || first == other {
		t.Errorf("the versions of one object are %s and %s, and %s of another", first, again, other)
	}
}

func TestIsTenants(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, applied string
		want          bool
	}{
		"a ConfigMap":                {"ConfigMap", "1", true},
		"an APIService of its own":   {"APIService", "", true},
		"an APIService of the addon": {"APIService", "1", false},
		"a Deployment":               {"Deployment", "", false},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": tc.kind}}
		if tc.applied != "" {
			obj.SetAnnotations(map[string]string{names.Applied: tc.applied})
		}
		if got := isTenants(obj); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestWanted: an addon that cannot be made holds up no other, and one that a
// tenant does not have takes no request.
func TestWanted(t *testing.T) {
	addon := func(name string, count int, err error) Addon {
		return Addon{Name: name, Objects: func(*tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
			return make([]*unstructured.Unstructured, count), err
		}}
	}
	remote := addon("metrics", 1, nil)
	remote.Network = true
	r := Reconciler{
		Addons: []Addon{addon("broken", 0, errors.New("no range")), addon("none", 0, nil), remote, addon("dns", 2, nil)},
		Capabilities: func(vc *tenancyv1alpha1.VirtualCluster) provisioner.Capabilities {
			return provisioner.Capabilities{
				Network:   vc.Status.Provisioner == "Near",
				Converted: vc.Status.Provisioner == tenancyv1alpha1.ProvisionerConverted,
			}
		},
	}
	near := &tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{Provisioner: "Near"}}
	if wanted, _ := r.wanted(near); len(wanted) != 2 || wanted[0].Name != "metrics" {
		t.Errorf("of a tenant that reaches the network, got %v", wanted)
	}
	converted := &tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{Provisioner: tenancyv1alpha1.ProvisionerConverted}}
	if wanted, err := r.wanted(converted); len(wanted) != 0 || err != nil {
		t.Errorf("of a converted tenant, got %v, %v", wanted, err)
	}
	wanted, err := r.wanted(&tenancyv1alpha1.VirtualCluster{})
	if len(wanted) != 1 || wanted[0].Name != "dns" || len(wanted[0].objects) != 2 {
		t.Errorf("got %v", wanted)
	}
	if err == nil || !strings.Contains(err.Error(), "broken: no range") {
		t.Errorf("got error %v", err)
	}
}
