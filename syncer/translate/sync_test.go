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

func TestShowsNode(t *testing.T) {
	some := tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll, NodeSelector: map[string]string{"pool": "a", "gpu": ""}}
	for name, tt := range map[string]struct {
		sync   tenancyv1alpha1.SyncSpec
		labels map[string]string
		want   bool
	}{
		"by default":                   {tenancyv1alpha1.SyncSpec{}, nil, false},
		"those that run its pods":      {tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncReferenced}, nil, false},
		"all":                          {tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll}, nil, true},
		"one with all labels":          {some, map[string]string{"pool": "a", "gpu": "", "zone": "z"}, true},
		"one with one of two labels":   {some, map[string]string{"pool": "a"}, false},
		"one with another value":       {some, map[string]string{"pool": "b", "gpu": ""}, false},
		"one without any":              {some, nil, false},
		"one with labels, but not all": {tenancyv1alpha1.SyncSpec{NodeSelector: some.NodeSelector}, some.NodeSelector, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Tenant{Sync: tt.sync}).ShowsNode(tt.labels); got != tt.want {
				t.Errorf("shown: %t, want %t", got, tt.want)
			}
		})
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
