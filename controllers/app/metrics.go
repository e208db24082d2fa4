package app

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/expiry"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// The kinds of certificates. Those of the store have the names of their Secrets.
const (
	kindKubeconfig = "kubeconfig"
	kindWebhook    = "webhook"
	storePrefix    = "store_"
)

// scrapeTimeout limits how long a scrape waits for the cache.
const scrapeTimeout = time.Second

// sources are what metrics are computed of when they are scraped. The reader is
// that of the cache; without it, there are no tenants.
type sources struct {
	reader    client.Reader
	registry  provisioner.Registry
	byDefault tenancyv1alpha1.ProvisionerType
	// webhook and store are nil if there are none.
	webhook *servingcert.Keeper
	store   *store.Reconciler
}

// registerMetrics registers the metrics of a manager. It returns those that its
// reconciler records; nil without a registerer.
func registerMetrics(registerer prometheus.Registerer, of sources) (*virtualcluster.Metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	kinds := []string{kindKubeconfig, kindWebhook}
	for _, name := range store.Names() {
		kinds = append(kinds, storePrefix+name)
	}
	kubeconfigs := &kubeconfigs{reader: of.reader}
	for _, c := range []prometheus.Collector{
		newTenants(of),
		newOrphaned(of),
		expiry.NewCollector("vc_manager", kinds, kubeconfigs.expiries, of.webhookExpiry, of.storeExpiries),
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the manager: %w", err)
		}
	}
	return virtualcluster.NewMetrics(registerer)
}

// RegisterMetrics registers the metrics of a manager that does not run, to
// generate their reference.
func RegisterMetrics(registerer prometheus.Registerer) error {
	_, err := registerMetrics(registerer, sources{})
	return err
}

func (s sources) webhookExpiry(yield func(string, time.Time) bool) {
	if s.webhook == nil {
		return
	}
	if end, ok := s.webhook.NotAfter(); ok {
		yield(kindWebhook, end)
	}
}

func (s sources) storeExpiries(yield func(string, time.Time) bool) {
	if s.store == nil {
		return
	}
	for name, end := range s.store.Expiries {
		if !yield(storePrefix+name, end) {
			return
		}
	}
}
