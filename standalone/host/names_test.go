package host

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// installation are the names of a platform.
func installation() platformNames {
	return platformNames{
		domain: "tenants.example.com", hosts: []string{"lb.example.com", "vc-host.vc-system.svc", "198.51.100.7", "10.1.2.3"},
		networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/16")},
	}
}

func TestReserves(t *testing.T) {
	for san, want := range map[string]string{
		"shop.example.com": "", "shop.tenants.example.com": "", "a.b.tenants.example.com": "", "team-0a1b2c-shop.example.com": "",
		"192.0.2.1": "", "2001:db8::1": "",

		"team-0a1b2c-shop.tenants.example.com": "form of the names",
		"tenants.example.com":                  "of the platform",
		"lb.example.com":                       "of the platform",
		"vc-host.vc-system.svc":                "of the platform",
		"198.51.100.7":                         "of the platform",
		"team-0a1b2c-shop.vc.internal":         "of the platform",
		"kubernetes.default.svc":               "of the platform",
		"kubernetes.default.svc.my.domain":     "of the platform",
		"kubernetes.default":                   "of the platform",
		"a.localhost":                          "of the platform",
		"localhost":                            "no complete DNS name",
		"kubernetes":                           "no complete DNS name",
		"*.example.com":                        "no complete DNS name",
		"*.tenants.example.com":                "no complete DNS name",
		"*":                                    "no complete DNS name",
		"":                                     "no complete DNS name",
		"Shop.example.com":                     "no complete DNS name",
		"shop.example.com.":                    "no complete DNS name",
		"a_b.example.com":                      "no complete DNS name",
		"10.0.0.300":                           "no complete DNS name",
		"0x7f.1":                               "no complete DNS name",
		strings.Repeat("a.", 127) + "a":        "no complete DNS name",
		"10.9.8.7":                             "of the super cluster",
		"fd00::1":                              "of the super cluster",
		"127.0.0.1":                            "no address of a network",
		"0.0.0.0":                              "no address of a network",
		"169.254.169.254":                      "no address of a network",
		"224.0.0.1":                            "no address of a network",
		"::1":                                  "no address of a network",
		"fe80::1":                              "no address of a network",
		"::ffff:10.9.8.7":                      "no address of a network",
	} {
		if got := installation().reserves(san); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q is rejected since it %q, want %q", san, got, want)
		}
	}
}

func TestPlatformNames(t *testing.T) {
	o := DefaultOptions()
	o.Advertise, o.InternalAddress, o.PodAddress, o.Domain = "lb.example.com:443", "vc-host.vc-system.svc:443", "10.1.2.3", "tenants.example.com"
	o.Internal = []string{"10.0.0.0/8"}
	got := o.platformNames("https://198.51.100.7:6443")
	for _, san := range []string{"lb.example.com", "vc-host.vc-system.svc", "10.1.2.3", "198.51.100.7", "10.2.3.4", "a-0a1b2c-b.tenants.example.com"} {
		if got.reserves(san) == "" {
			t.Errorf("%s can be a tenant's", san)
		}
	}
}

func TestChooseSANs(t *testing.T) {
	const a, b, address = "a.example.com", "b.example.com", "192.0.2.1"
	plane := func(name string, age time.Duration, has ...string) tenancyv1alpha1.HostedControlPlane {
		p := tenancyv1alpha1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: name, UID: types.UID(name)}}
		p.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-age))
		p.Status.ExtraSANs = has
		return p
	}
	type planes []tenancyv1alpha1.HostedControlPlane
	for name, c := range map[string]struct {
		wanted   []string
		own      tenancyv1alpha1.HostedControlPlane
		others   planes
		all, dns []string
		reason   string // empty for none
	}{
		"none":                         {nil, plane("own", 0, a), nil, nil, nil, "none"},
		"free ones":                    {[]string{a, address, b}, plane("own", 0), nil, []string{a, address, b}, []string{a, b}, ""},
		"one that it has":              {[]string{a}, plane("own", 0, a), planes{plane("rival", time.Hour, b)}, []string{a}, []string{a}, ""},
		"one of a younger one":         {[]string{a, b}, plane("own", time.Hour), planes{plane("rival", 0, a)}, []string{b}, []string{b}, "NameTaken"},
		"one that a younger one has":   {[]string{a}, plane("own", time.Hour, a), planes{plane("rival", 0, a)}, []string{a}, []string{a}, ""},
		"one that an older one has":    {[]string{a}, plane("own", 0, a), planes{plane("rival", time.Hour, a)}, nil, nil, "NameTaken"},
		"one that a rival loses":       {[]string{a}, plane("own", 0, a), planes{plane("rival", 0, a)}, []string{a}, []string{a}, ""},
		"one of a rival of its age":    {[]string{a}, plane("own", 0, a), planes{plane("a-rival", 0, a)}, nil, nil, "NameTaken"},
		"an address of another one":    {[]string{address}, plane("own", 0), planes{plane("rival", 0, address)}, []string{address}, nil, ""},
		"one of the platform":          {[]string{"lb.example.com", a}, plane("own", 0), nil, []string{a}, []string{a}, "NameReserved"},
		"one of the platform it has":   {[]string{"lb.example.com"}, plane("own", 0, "lb.example.com"), nil, nil, nil, "NameReserved"},
		"several that it cannot have":  {[]string{a, "localhost"}, plane("own", 0), planes{plane("rival", 0, a)}, nil, nil, "NameTaken"},
		"an address of the super one ": {[]string{"10.0.0.1"}, plane("own", 0), nil, nil, nil, "NameReserved"},
	} {
		t.Run(name, func(t *testing.T) {
			all := slices.Concat(c.others, planes{c.own})
			got := chooseSANs(c.wanted, &c.own, installation(), func(name string) []tenancyv1alpha1.HostedControlPlane {
				return slices.DeleteFunc(slices.Clone(all), func(p tenancyv1alpha1.HostedControlPlane) bool {
					return !slices.Contains(p.Status.ExtraSANs, name)
				})
			})
			if diff := cmp.Diff([][]string{c.all, c.dns}, [][]string{got.all, got.dnsNames}); diff != "" {
				t.Error(diff)
			}
			switch {
			case (got.report == nil) != (c.reason == "none"):
				t.Errorf("reported %v", got.report)
			case got.report != nil && (got.report.Rejected != c.reason || (got.report.Message == "") != (c.reason == "")):
				t.Errorf("reported %+v, want %s", *got.report, c.reason)
			case got.report != nil && strings.Contains(got.report.Message, "rival"):
				t.Errorf("the message names another tenant: %s", got.report.Message)
			}
		})
	}
}

// TestWithSANs: the object of the cache is not changed.
func TestWithSANs(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if withSANs(vc, nil) != vc {
		t.Error("a copy was made without a need")
	}
	vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ExtraSANs: []string{"a", "b"}}
	got := withSANs(vc, []string{"b"})
	if diff := cmp.Diff([][]string{{"a", "b"}, {"b"}}, [][]string{wantedBy(vc), wantedBy(got)}); diff != "" {
		t.Error(diff)
	}
}

func TestReportSANs(t *testing.T) {
	status := &tenancyv1alpha1.HostedControlPlaneStatus{}
	for _, c := range []struct {
		report *contract.ExtraSANs
		want   map[string]string
	}{
		{&contract.ExtraSANs{}, map[string]string{"ExtraSANsValid": "True Valid The control plane has all extra names"}},
		{&contract.ExtraSANs{Rejected: "NameTaken", Message: "a"}, map[string]string{"ExtraSANsValid": "False NameTaken a"}},
		{nil, map[string]string{}},
	} {
		reportSANs(status, 3, c.report)
		if diff := cmp.Diff(c.want, summaryOf(*status)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestKeyBelow(t *testing.T) {
	for _, c := range []struct{ name, domain, want string }{
		{"team-0a1b2c-shop.example.com", "example.com", "team-0a1b2c-shop"},
		{"team-0a1b2c-shop.example.com", "", ""},
		{"team-0a1b2c-shop.example.org", "example.com", ""},
		{"team-0a1b2c-shopexample.com", "example.com", ""},
		{"a.team-0a1b2c-shop.example.com", "example.com", ""},
		{"shop.example.com", "example.com", ""},
		{"example.com", "example.com", ""},
		{".example.com", "example.com", ""},
		{"", "example.com", ""},
	} {
		if got, found := keyBelow(c.name, c.domain); found != (c.want != "") || found && got != c.want {
			t.Errorf("%q below %q leads to %q, %t, want %q", c.name, c.domain, got, found, c.want)
		}
	}
}
