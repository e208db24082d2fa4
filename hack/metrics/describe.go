package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// describe returns the metrics that a program registers. It creates a series in
// each collector, since collectors without series return nothing.
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

// recorder is a registry that records the collectors.
type recorder struct {
	*prometheus.Registry

	collectors []prometheus.Collector
}

// Register registers a collector.
func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

// touch creates a series in a vector. Other collectors have series.
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

// mostLabels is the maximum number of labels of a metric.
const mostLabels = 8

// touchVec creates a series, trying every number of labels.
func touchVec[M any](get func(values ...string) (M, error)) error {
	var failed error
	for n := range mostLabels + 1 {
		_, err := get(make([]string, n)...)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("create a series: %w", failed)
}
