package hosted

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/internal/expiry"
)

// The kinds of certificates of a control plane. The authorities are not renewed.
const (
	kindAuthority = "authority"
	kindServer    = "server"
	kindClient    = "client"
)

// newExpiryCollector returns the collector of when certificates of control planes
// expire.
func newExpiryCollector(certificates expiry.Certificates) prometheus.Collector {
	return expiry.NewCollector("vc_hosted", []string{kindAuthority, kindServer, kindClient}, certificates)
}

// endOf returns when the first of several certificates expires.
func endOf(certificates ...[]byte) time.Time {
	ends := make([]time.Time, len(certificates))
	for i, certificate := range certificates {
		ends[i] = parseCertificate(certificate).NotAfter
	}
	return slices.MinFunc(ends, time.Time.Compare)
}

// expiries are those of the certificates of control planes that are ready.
// Control planes that sleep renew theirs when they wake.
func (h *Host) expiries(yield func(string, time.Time) bool) {
	for _, c := range h.all() {
		for kind, end := range c.expiries() {
			if !yield(kind, end) {
				return
			}
		}
	}
}

// all returns the control planes that run.
func (h *Host) all() []*ControlPlane {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.planes))
}

// expiries returns when certificates expire, by their kind: nothing before the
// control plane was ready, since its credentials are loaded until then.
func (c *ControlPlane) expiries() map[string]time.Time {
	select {
	case <-c.ready:
		c.creds.mu.RLock()
		defer c.creds.mu.RUnlock()
		return c.creds.ends // which is replaced, and never changed
	default:
		return nil
	}
}
