package local

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

var red = translate.Tenant{Key: "default-abc123-red", Name: "red", Namespace: "default", Sync: tenancyv1alpha1.SyncSpec{
	Metadata: []tenancyv1alpha1.MetadataSync{{Kinds: []string{"ConfigMap"}, Labels: []string{"tier"}}},
}}

// declared returns a ConfigMap of the tenant.
func declared(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Labels: map[string]string{"tier": "front"}},
		Data:       map[string]string{"color": "red"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// copied returns its copy.
func copied(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	obj := declared()
	key := red.SuperKey(client.ObjectKeyFromObject(obj))
	return declared(append([]func(*corev1.ConfigMap){func(c *corev1.ConfigMap) {
		c.ObjectMeta = red.Down("ConfigMap", obj, key)
		c.UID = "2"
	}}, change...)...)
}

func deleting(c *corev1.ConfigMap) { c.DeletionTimestamp = new(metav1.Now()) }

func TestDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant, super []client.Object
		unwanted      bool
		want          string // empty for none
	}{
		"both equal":     {tenant: []client.Object{declared()}, super: []client.Object{copied()}},
		"nothing at all": {},
		"an object of the super cluster's own": {
			super: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "web"}}},
		},
		"an object of the root namespace": {super: []client.Object{copied(func(c *corev1.ConfigMap) { c.Namespace = red.Key })}},
		"a label that the super cluster added": {
			tenant: []client.Object{declared()},
			super:  []client.Object{copied(func(c *corev1.ConfigMap) { c.Labels["audit"] = "yes" })},
		},
		"no copy":   {tenant: []client.Object{declared()}, want: "has 0 copies"},
		"no object": {super: []client.Object{copied()}, want: "the tenant has not"},
		"another object of that name": {
			tenant: []client.Object{declared(func(c *corev1.ConfigMap) { c.UID = "3" })}, super: []client.Object{copied()},
			want: "has 0 copies",
		},
		"two copies": {
			tenant: []client.Object{declared()},
			super:  []client.Object{copied(), copied(func(c *corev1.ConfigMap) { c.Name = "web2" })},
			want:   "has 2 copies",
		},
		"a copy elsewhere": {
			tenant: []client.Object{declared()}, super: []client.Object{copied(func(c *corev1.ConfigMap) { c.Name = "web2" })},
			want: "has its copy at",
		},
		"other data": {
			tenant: []client.Object{declared()}, super: []client.Object{copied(func(c *corev1.ConfigMap) { c.Data["color"] = "blue" })},
			want: "data is map[color:red] in the tenant and map[color:blue] in the super cluster",
		},
		"another label": {
			tenant: []client.Object{declared()}, super: []client.Object{copied(func(c *corev1.ConfigMap) { c.Labels["tier"] = "back" })},
			want: `label tier should be "front" in the super cluster and is "back"`,
		},
		"a copy that lost our labels": {
			tenant: []client.Object{declared()}, super: []client.Object{copied(func(c *corev1.ConfigMap) { c.Labels = nil })},
			want: "label tenancy.x-k8s.io/vcname should be",
		},
		"an object that is being deleted": {
			tenant: []client.Object{declared(deleting)}, super: []client.Object{copied()}, want: "is still being deleted in the tenant",
		},
		"a copy that is being deleted": {
			tenant: []client.Object{declared()}, super: []client.Object{copied(deleting)}, want: "a copy that is still being deleted",
		},
		"a copy of what nothing refers to": {
			tenant: []client.Object{declared()}, super: []client.Object{copied()}, unwanted: true, want: "that nothing asks for",
		},
		"no copy of what nothing refers to": {tenant: []client.Object{declared()}, unwanted: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &comparison{who: red, references: map[reference]bool{{"ConfigMap", "shop", "web"}: !tc.unwanted}}
			for _, k := range downKinds() {
				if k.name == "ConfigMap" {
					c.compare(k, tc.tenant, tc.super)
				}
			}
			got := strings.Join(c.found, "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
