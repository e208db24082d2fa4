package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/syncer/app"
)

// nodeLinger is short, so that tests can wait for it to expire.
const nodeLinger = time.Second

// podNetwork has the addresses of vc-standalone's simulated pods.
const podNetwork = "10.128.0.0/9"

// Syncer is a syncer in this process.
type Syncer struct {
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan error
}

// StartSyncer starts a syncer for a super cluster. Each change modifies the
// default options.
func StartSyncer(super *rest.Config, logger logr.Logger, change ...func(*app.Options)) *Syncer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Syncer{registry: prometheus.NewRegistry(), cancel: cancel, ended: make(chan error, 1)}
	opts := app.DefaultOptions()
	opts.Logger, opts.Registerer = logger, s.registry
	opts.NodeLinger = nodeLinger
	opts.PodCIDRs = []string{podNetwork}
	for _, f := range change {
		f(&opts)
	}
	go func() { s.ended <- app.Run(ctx, super, opts) }()
	return s
}

// Stop stops the syncer and waits for it. It is idempotent. The error of one
// that does not end has what it does instead.
func (s *Syncer) Stop() error {
	s.cancel()
	err := <-s.ended
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; it is at %s", err, running())
	}
	s.ended <- err
	return err
}

// Metric returns the value of a counter or gauge, or the count of a histogram,
// summed over all series with these labels.
func (s *Syncer) Metric(name string, with map[string]string) (float64, error) {
	return metric(s.registry, name, with)
}

func metric(registry *prometheus.Registry, name string, with map[string]string) (float64, error) {
	families, err := registry.Gather()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := labels(m)
			maps.DeleteFunc(has, func(label, value string) bool { return with[label] != value })
			if len(has) == len(with) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum, nil
}

// Requests counts the requests that the syncer has sent, except watches, by
// "side verb resource".
type Requests map[string]float64

// Requests returns the requests that have been sent so far.
func (s *Syncer) Requests() (Requests, error) {
	families, err := s.registry.Gather()
	if err != nil {
		return nil, err
	}
	counts := Requests{}
	for _, family := range families {
		if family.GetName() != "vc_syncer_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if l := labels(m); l["verb"] != "watch" {
				counts[strings.Join([]string{l["side"], l["verb"], l["resource"]}, " ")] += m.GetCounter().GetValue()
			}
		}
	}
	return counts, nil
}

// Since returns the requests after an earlier count.
func (r Requests) Since(earlier Requests) Requests {
	diff := maps.Clone(r)
	for k, n := range earlier {
		diff[k] -= n
	}
	maps.DeleteFunc(diff, func(_ string, n float64) bool { return n == 0 })
	return diff
}

func labels(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}
