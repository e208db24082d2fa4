package expiry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/virtualcluster/virtualcluster/internal/expiry"
)

func TestCollector(t *testing.T) {
	now := time.Now()
	first := now.Add(time.Hour).Truncate(time.Second)
	tenants := func(yield func(string, time.Time) bool) {
		for i := range 1000 {
			if !yield("kubeconfig", first.Add(time.Duration(i)*24*time.Hour)) {
				return
			}
		}
	}
	other := func(yield func(string, time.Time) bool) {
		_ = yield("webhook", now.Add(365*24*time.Hour)) && yield("unknown", now)
	}
	all := expiry.NewCollector("vc_test", []string{"kubeconfig", "webhook", "store"}, tenants, other)
	want := fmt.Sprintf(`
# HELP vc_test_certificate_expiry_timestamp_seconds When the first certificate of a kind expires; +Inf if there is none.
# TYPE vc_test_certificate_expiry_timestamp_seconds gauge
vc_test_certificate_expiry_timestamp_seconds{kind="kubeconfig"} %d
vc_test_certificate_expiry_timestamp_seconds{kind="store"} +Inf
vc_test_certificate_expiry_timestamp_seconds{kind="webhook"} %d
# HELP vc_test_certificates_expiring Number of certificates of a kind that have expired or expire within 30 days.
# TYPE vc_test_certificates_expiring gauge
vc_test_certificates_expiring{kind="kubeconfig"} 30
vc_test_certificates_expiring{kind="store"} 0
vc_test_certificates_expiring{kind="webhook"} 0
`, first.Unix(), now.Add(365*24*time.Hour).Unix())
	if err := testutil.CollectAndCompare(all, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
