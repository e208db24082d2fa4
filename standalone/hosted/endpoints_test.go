package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoints(t *testing.T) {
	const service = "vc-host.vc-system.svc"
	type want struct {
		outside, inside endpoint
		hosts           []string
	}
	own := func(address string) endpoint { return endpoint{address, "red.vc.internal"} }
	for name, c := range map[string]struct {
		opts Options
		want want
	}{
		"one address": {
			Options{Advertise: service, AdvertisePort: 443}, want{own(service + ":443"), own(service + ":443"), []string{service}},
		},
		"another one inside": {
			Options{Advertise: "192.0.2.1", AdvertisePort: 6443, Internal: service + ":443"},
			want{own("192.0.2.1:6443"), own(service + ":443"), []string{"192.0.2.1", service}},
		},
		"another port inside": {
			Options{Advertise: service, AdvertisePort: 443, Internal: service + ":6443"},
			want{own(service + ":443"), own(service + ":6443"), []string{service}},
		},
		"a domain": {
			Options{Advertise: service, AdvertisePort: 443, Domain: "example.com", DomainPort: 443},
			want{endpoint{"red.example.com", ""}, own(service + ":443"), []string{service, "red.example.com"}},
		},
		"a domain at another port": {
			Options{Advertise: service, AdvertisePort: 443, Domain: "example.com", DomainPort: 8443},
			want{endpoint{"red.example.com:8443", ""}, own(service + ":443"), []string{service, "red.example.com"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{opts: c.opts}
			got := want{h.outside("red"), h.inside("red"), h.clientHosts("red")}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{}, endpoint{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
