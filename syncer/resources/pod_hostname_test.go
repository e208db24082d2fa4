package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodHasItsFullNameAsHostname(t *testing.T) {
	long := strings.Repeat("x", 40)
	for name, tc := range map[string]struct{ tenant, want corev1.PodSpec }{
		"of its own name": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db"},
			corev1.PodSpec{HostnameOverride: new("web.db.default.svc.my.domain"), Subdomain: "db"},
		},
		"of the host name that it chose": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", Hostname: "first"},
			corev1.PodSpec{HostnameOverride: new("first.db.default.svc.my.domain"), Subdomain: "db", Hostname: "first"},
		},
		"of the maximum length": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", Hostname: long[:38]},
			corev1.PodSpec{HostnameOverride: new(long[:38] + ".db.default.svc.my.domain"), Subdomain: "db", Hostname: long[:38]},
		},
		"but not one that would be cut off": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", Hostname: long[:39]},
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", Hostname: long[:39]},
		},
		"but not without a domain": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true)}, corev1.PodSpec{SetHostnameAsFQDN: new(true)},
		},
		"but not in the network of its node": {
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", HostNetwork: true},
			corev1.PodSpec{SetHostnameAsFQDN: new(true), Subdomain: "db", HostNetwork: true},
		},
		"but not if it does not want it": {
			corev1.PodSpec{SetHostnameAsFQDN: new(false), Subdomain: "db"}, corev1.PodSpec{SetHostnameAsFQDN: new(false), Subdomain: "db"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := addressed()
			v.Tenant.ClusterDomain = "my.domain"
			got := tc.tenant.DeepCopy()
			translateHostname(v, "web", got)
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
