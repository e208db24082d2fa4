package tenants

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestNames: each tenant has its own answers for equal names, as the DNS
// specification of Kubernetes says.
func TestNames(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	for name, tt := range map[string]struct {
		name      string
		qtype     uint16
		red, blue string
	}{
		"a Service":             {"web.default.svc.cluster.local.", dns.TypeA, "10.1.0.80", "10.2.0.80"},
		"in capitals":           {"WEB.default.svc.Cluster.Local.", dns.TypeA, "10.1.0.80", "10.2.0.80"},
		"no IPv6":               {"web.default.svc.cluster.local.", dns.TypeAAAA, "", ""},
		"a headless Service":    {"db.default.svc.cluster.local.", dns.TypeA, "10.1.1.1", "10.2.1.1"},
		"a pod of it":           {"db-0.db.default.svc.cluster.local.", dns.TypeA, "10.1.1.1", "10.2.1.1"},
		"a port":                {"_http._tcp.web.default.svc.cluster.local.", dns.TypeSRV, "0 100 80 web.default.svc.cluster.local.", "0 100 80 web.default.svc.cluster.local."},
		"a port of a pod":       {"_http._tcp.db.default.svc.cluster.local.", dns.TypeSRV, "0 100 80 db-0.db.default.svc.cluster.local.", "0 100 80 db-0.db.default.svc.cluster.local."},
		"an address":            {"80.0.1.10.in-addr.arpa.", dns.TypePTR, "web.default.svc.cluster.local.", ""},
		"an address of a pod":   {"1.1.2.10.in-addr.arpa.", dns.TypePTR, "", "db-0.db.default.svc.cluster.local."},
		"a pod by its address":  {"1-2-3-4.default.pod.cluster.local.", dns.TypeA, "1.2.3.4", "1.2.3.4"},
		"a name in a copy":      {"annotated.default.svc.cluster.local.", dns.TypeA, "web.default.svc.cluster.local. 10.1.0.80", "web.default.svc.cluster.local. 10.2.0.80"},
		"an ExternalName":       {"elsewhere.default.svc.cluster.local.", dns.TypeA, "www.example.com. " + outside, "www.example.com. " + outside},
		"one of the tenant":     {"inside.default.svc.cluster.local.", dns.TypeA, "web.default.svc.cluster.local. 10.1.0.80", "web.default.svc.cluster.local. 10.2.0.80"},
		"outside":               {"www.example.com.", dns.TypeA, outside, outside},
		"no such Service":       {"no.default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "NXDOMAIN"},
		"no such namespace":     {"web.no.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "NXDOMAIN"},
		"a namespace":           {"default.svc.cluster.local.", dns.TypeA, "", ""},
		"the copy's namespace":  {"web.red-default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "NXDOMAIN"},
		"the other's namespace": {"web.blue-default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "NXDOMAIN"},
		"the version":           {"dns-version.cluster.local.", dns.TypeTXT, `"1.1.0"`, `"1.1.0"`},
		"all at once":           {"cluster.local.", dns.TypeAXFR, "REFUSED", "REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, network := range []string{"udp", "tcp"} {
				for tenant, want := range map[string][2]string{"red": {redPod, tt.red}, "blue": {bluePod, tt.blue}} {
					answer, err := w.ask(query{want[0], tenant, network, tt.name, tt.qtype, 2 * time.Second})
					if err != nil {
						t.Errorf("%s by %s: %v", tenant, network, err)
					} else if got := text(answer); got != want[1] {
						t.Errorf("%s by %s: got %q, want %q", tenant, network, got, want[1])
					}
				}
			}
		})
	}
}

// TestNoTenant: what arrives without a tenant gets nothing, not even names
// outside.
func TestNoTenant(t *testing.T) {
	handler := &namesHandler{}
	for _, name := range []string{"web.default.svc.cluster.local.", "www.example.com."} {
		code, err := handler.ServeDNS(t.Context(), nil, new(dns.Msg).SetQuestion(name, dns.TypeA))
		if err != nil || code != dns.RcodeRefused {
			t.Errorf("%s: got %s (%v)", name, dns.RcodeToString[code], err)
		}
	}
}
