package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// describe returns the metrics that a program registers. They come from the collectors themselves: each is made to have one
// series, for one without a series shows nothing.
func describe(register func(prometheus.Registerer) error) ([]*dto.MetricFamily, error) {
	recorder := &recorder{Registry: prometheus.NewRegistry()}
	if err := register(recorder); err != nil {
		return nil, err
	}
	for _, c := range recorder.collectors {
		if err := touch(c); err != nil {
			return nil, err
		}
	}
	return recorder.Gather()
}

// recorder is a registry that remembers the collectors.
type recorder struct {
	*prometheus.Registry

	collectors []prometheus.Collector
}

// Register registers a collector.
func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

// touch makes a series in a collector that makes them by their labels. Others have theirs.
func touch(c prometheus.Collector) error {
	switch vec := c.(type) {
	case *prometheus.CounterVec:
		return touchVec(vec.GetMetricWithLabelValues)
	case *prometheus.GaugeVec:
		return touchVec(vec.GetMetricWithLabelValues)
	case *prometheus.HistogramVec:
		return touchVec(vec.GetMetricWithLabelValues)
	}
	return nil
}

// mostLabels is how many labels a metric may have.
const mostLabels = 8

// touchVec makes a series with as many labels as it takes.
func touchVec[M any](get func(values ...string) (M, error)) error {
	var failed error
	for n := range mostLabels + 1 {
		_, err := get(make([]string, n)...)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("no series can be made: %w", failed)
}
