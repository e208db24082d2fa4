package provisioner

import (
	"strings"
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func TestCheckSpec(t *testing.T) {
	const have = "v1.36.3"
	version := func(v string) tenancyv1alpha1.VirtualClusterSpec {
		return tenancyv1alpha1.VirtualClusterSpec{KubernetesVersion: v}
	}
	cidr := func(c string) tenancyv1alpha1.VirtualClusterSpec {
		return tenancyv1alpha1.VirtualClusterSpec{ServiceCIDR: c}
	}
	const badVersion, badSpec = tenancyv1alpha1.ReasonUnsupportedVersion, tenancyv1alpha1.ReasonInvalidSpec
	tests := map[string]struct {
		spec   tenancyv1alpha1.VirtualClusterSpec
		reason string
	}{
		"nothing":                   {},
		"exact":                     {spec: version("v1.36.3")},
		"exact without v":           {spec: version("1.36.3")},
		"minor":                     {spec: version("v1.36")},
		"minor without v":           {spec: version("1.36")},
		"other patch":               {spec: version("v1.36.2"), reason: badVersion},
		"other minor":               {spec: version("v1.35"), reason: badVersion},
		"minor that begins alike":   {spec: version("v1.3"), reason: badVersion},
		"patch that begins alike":   {spec: version("v1.36.30"), reason: badVersion},
		"usual network":             {spec: cidr("10.0.0.0/16")},
		"largest network":           {spec: cidr("10.96.0.0/12")},
		"smallest network":          {spec: cidr("10.96.0.0/29")},
		"too large":                 {spec: cidr("10.0.0.0/8"), reason: badSpec},
		"too small":                 {spec: cidr("10.96.0.0/30"), reason: badSpec},
		"IPv6":                      {spec: cidr("fd00::/112")},
		"too large, IPv6":           {spec: cidr("fd00::/107"), reason: badSpec},
		"too small, IPv6":           {spec: cidr("fd00::/126"), reason: badSpec},
		"no network":                {spec: cidr("10.96.0.0"), reason: badSpec},
		"two networks":              {spec: cidr("10.96.0.0/16,fd00::/112"), reason: badSpec},
		"bad version and good CIDR": {spec: tenancyv1alpha1.VirtualClusterSpec{KubernetesVersion: "9.9", ServiceCIDR: "10.0.0.0/16"}, reason: badVersion},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkSpec(test.spec, have)
			failure := provisioner.AsFailure(err)
			switch {
			case test.reason == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.reason != "" && (failure == nil || failure.Reason != test.reason):
				t.Errorf("got %v, want a failure for %s", err, test.reason)
			}
		})
	}
}

func TestUnsupportedVersionNamesTheOneThereIs(t *testing.T) {
	err := checkSpec(tenancyv1alpha1.VirtualClusterSpec{KubernetesVersion: "1.30"}, "v1.36.3")
	if !strings.Contains(err.Error(), "v1.36.3") {
		t.Errorf("%q does not name v1.36.3", err)
	}
}

// TestExtraSANs: a host without checks of names gives no extra ones, and says so.
func TestExtraSANs(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	checked, unchecked := &Hosted{options: Options{ExtraSANs: true}}, &Hosted{}
	for _, h := range []*Hosted{checked, unchecked} {
		if h.extraSANsOf(vc) != nil || h.unsupportedSANs(vc) != nil {
			t.Error("there are extra names that were not asked for")
		}
	}
	vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ExtraSANs: []string{"a.example.com"}}
	if len(checked.extraSANsOf(vc)) != 1 || checked.unsupportedSANs(vc) != nil {
		t.Error("an extra name is missing")
	}
	if report := unchecked.unsupportedSANs(vc); unchecked.extraSANsOf(vc) != nil || report.Rejected != tenancyv1alpha1.ReasonExtraSANsUnsupported {
		t.Errorf("got %v, reported %v", unchecked.extraSANsOf(vc), report)
	}
}
