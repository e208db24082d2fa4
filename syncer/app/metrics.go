package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/internal/share"
	"github.com/virtualcluster/virtualcluster/plugins/quota"
	"github.com/virtualcluster/virtualcluster/syncer/converted/stored"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/provider"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// instruments are the metrics of all parts of a syncer.
type instruments struct {
	requests *requests.Counter
	provider *provider.Metrics
	engine   *engine.Metrics
	gate     *validation.Metrics
	networks *networks.Metrics
	share    *share.Metrics
	stored   *stored.Metrics
}

// newInstruments creates and registers the metrics.
func newInstruments(registerer prometheus.Registerer) (i instruments, err error) {
	if i.requests, err = requests.NewCounter(registerer); err != nil {
		return i, fmt.Errorf("register the metrics of requests: %w", err)
	}
	if i.provider, err = provider.NewMetrics(registerer); err != nil {
		return i, err
	}
	if i.engine, err = engine.NewMetrics(registerer); err != nil {
		return i, err
	}
	if i.gate, err = validation.NewMetrics(registerer); err != nil {
		return i, err
	}
	if i.networks, err = networks.NewMetrics(registerer); err != nil {
		return i, err
	}
	if i.share, err = share.NewMetrics(registerer, "vc_syncer"); err != nil {
		return i, err
	}
	i.stored, err = stored.NewMetrics(registerer)
	return i, err
}

// RegisterMetrics registers the metrics of a syncer that does not run, to
// generate their reference.
func RegisterMetrics(registerer prometheus.Registerer) error {
	if _, err := newInstruments(registerer); err != nil {
		return err
	}
	return quota.RegisterMetrics(registerer)
}
