package tenants

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// retry is the delay after which a failed listener is retried.
const retry = 10 * time.Second

// tenant is what the process knows of one tenant.
type tenant struct {
	admission *admission
	// view is what the tenant has.
	view view
	// names answers for the tenant's domain and for addresses, once it has a view.
	names kubernetes.Kubernetes
}

// listeners are the ports that are open, by cluster key. One goroutine owns
// them.
type listeners struct {
	host      string
	limits    Limits
	directory *Directory
	metrics   *metrics
	core      *dnsserver.Server
	// template answers for no tenant.
	template kubernetes.Kubernetes
	open     map[string]*listener
	// opened is set when the ports were opened the first time.
	opened atomic.Bool
}

// run keeps the ports open that the directory lists, until ctx ends.
func (l *listeners) run(ctx context.Context, changes <-chan struct{}) {
	defer func() {
		for _, listener := range l.open {
			listener.close()
		}
	}()
	if !cache.WaitForCacheSync(ctx.Done(), l.directory.HasSynced) {
		return
	}
	for {
		var again <-chan time.Time
		if !l.reconcile(ctx) {
			again = time.After(retry)
		}
		l.opened.Store(true)
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-again:
		}
	}
}

// reconcile closes and opens ports. It reports whether all are as they should
// be.
func (l *listeners) reconcile(ctx context.Context) bool {
	wanted := l.wanted()
	taken := map[uint16]bool{}
	for key, listener := range l.open {
		if wanted[key] != listener.spec {
			listener.close()
			delete(l.open, key)
			continue
		}
		taken[listener.spec.port] = true
	}
	complete := true
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if l.open[key] != nil {
			continue
		}
		// Two tenants with one port are a defect of what allocates them. The
		// second gets none, because it would get the answers of the first.
		spec := wanted[key]
		if taken[spec.port] {
			log.Errorf("Port %d of tenant %s is another tenant's", spec.port, key)
			continue
		}
		listener, err := listen(ctx, l.host, spec, l.newTenant(key, spec), l.core)
		if err != nil {
			log.Errorf("Tenant %s: %v", key, err)
			complete = false
			continue
		}
		l.open[key], taken[spec.port] = listener, true
	}
	l.metrics.listeners.Set(float64(len(l.open)))
	return complete
}

// wanted returns the listeners that the super cluster lists, by cluster key.
func (l *listeners) wanted() map[string]listenerSpec {
	wanted := map[string]listenerSpec{}
	for _, slice := range l.directory.listenerSlices() {
		if key, namespace := l.directory.owner(slice.Namespace); key != "" && namespace == metav1.NamespaceSystem {
			wanted[key] = *slice.listener
		}
	}
	return wanted
}

func (l *listeners) newTenant(key string, spec listenerSpec) *tenant {
	t := &tenant{
		admission: newAdmission(key, l.directory, l.metrics, l.limits),
		view:      view{directory: l.directory, key: key, since: time.Now()}, names: l.template,
	}
	t.names.Zones = append([]string{spec.domain + "."}, l.template.Zones[1:]...)
	return t
}
