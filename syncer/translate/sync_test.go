package translate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestMode(t *testing.T) {
	tenant := Tenant{Sync: tenancyv1alpha1.SyncSpec{Kinds: []tenancyv1alpha1.KindSync{
		{Kind: "ConfigMap", Mode: tenancyv1alpha1.SyncAll}, {Kind: "Event", Mode: tenancyv1alpha1.SyncOff},
	}}}
	for kind, want := range map[string]tenancyv1alpha1.SyncMode{
		"ConfigMap": tenancyv1alpha1.SyncAll, "Event": tenancyv1alpha1.SyncOff, "Secret": "", "configmap": "", "ConfigMap.example.com": "",
	} {
		if got := tenant.Mode(kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	if got := (Tenant{}).Mode("ConfigMap"); got != "" {
		t.Errorf("by default: %q", got)
	}
}

func TestOffers(t *testing.T) {
	tenant := Tenant{Sync: tenancyv1alpha1.SyncSpec{Publish: []tenancyv1alpha1.PublishedClasses{
		{Kind: "StorageClass", Names: []string{"fast", "slow"}}, {Kind: "IngressClass", Names: []string{"public"}},
	}}}
	for name, tc := range map[string]struct {
		kind, class string
		labels      map[string]string
		want        bool
	}{
		"published to this tenant":      {"StorageClass", "slow", nil, true},
		"not published":                 {"StorageClass", "secret", nil, false},
		"another kind of that name":     {"IngressClass", "fast", nil, false},
		"a kind of which nothing is":    {"RuntimeClass", "fast", nil, false},
		"published to all":              {"RuntimeClass", "fast", map[string]string{names.Public: "true"}, true},
		"published to all and by name":  {"StorageClass", "fast", map[string]string{names.Public: "true"}, true},
		"labelled with another value":   {"RuntimeClass", "fast", map[string]string{names.Public: "True"}, false},
		"labelled with nothing":         {"RuntimeClass", "fast", map[string]string{names.Public: ""}, false},
		"labelled as hidden, but named": {"StorageClass", "fast", map[string]string{names.Public: "false"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.class, Labels: tc.labels}}
			if got := tenant.Offers(tc.kind, class); got != tc.want {
				t.Errorf("offered: %t, want %t", got, tc.want)
			}
		})
	}
	public := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: map[string]string{names.Public: "true"}}}
	if !(Tenant{}).Offers("StorageClass", public) {
		t.Error("an object published to all tenants is not offered to a tenant without spec.sync")
	}
}
