package expressions

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Accounts are those of the control planes of a host.
type Accounts struct {
	mu    sync.RWMutex
	known map[string]*Account
}

// NewAccounts returns no accounts.
func NewAccounts() *Accounts { return &Accounts{known: map[string]*Account{}} }

// Add adds the account of a tenant.
func (a *Accounts) Add(account *Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[account.tenant] = account
}

// Remove closes and removes an account.
func (a *Accounts) Remove(account *Account) {
	account.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[account.tenant] == account {
		delete(a.known, account.tenant)
	}
}

// Of returns the account of a tenant; nil if it has none.
func (a *Accounts) Of(tenant string) *Account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.known[tenant]
}

func (a *Accounts) all() map[string]*Account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return maps.Clone(a.known)
}

// collector exports the metrics of accounts.
type collector struct {
	accounts              *Accounts
	used, limit, rejected *prometheus.Desc
}

// NewCollector returns a collector of the metrics of accounts.
func NewCollector(accounts *Accounts) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("vc_hosted_"+name, help, []string{"control_plane"}, nil)
	}
	return &collector{
		accounts: accounts,
		used: desc("expressions", "How much work the expressions are that a control plane stores, in expressions of the usual length; "+
			"0 before the first write that has any."),
		limit: desc("expressions_limit", "How much work the expressions of a control plane may be, in expressions of the usual length; "+
			"0 is no limit."),
		rejected: desc("rejected_expressions_total", "Writes rejected because of the limit of expressions of their control plane."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.used, c.limit, c.rejected} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for name, account := range c.accounts.all() {
		usage := account.Usage()
		to <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(usage.Used), name)
		to <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(usage.Limit), name)
		to <- prometheus.MustNewConstMetric(c.rejected, prometheus.CounterValue, float64(usage.Rejected), name)
	}
}
