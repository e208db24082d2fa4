package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// poll is the interval at which the metrics of a syncer are scraped while
	// waiting.
	poll = 200 * time.Millisecond
	// patience is the time that an operation may take without progress.
	patience = 5 * time.Minute
)

// syncer is the measured syncer.
type syncer struct {
	process *local.SyncerProcess
	address string
	token   string
	client  *http.Client
}

// startSyncer starts a syncer with further arguments, and waits until its
// metrics can be scraped.
func (w *world) startSyncer(ctx context.Context, args ...string) error {
	if err := w.launchSyncer(ctx, args...); err != nil {
		return err
	}
	return w.awaitSyncer(ctx, func(sample) bool { return true })
}

// launchSyncer starts a syncer and does not wait.
func (w *world) launchSyncer(ctx context.Context, args ...string) error {
	return w.launch(ctx, filepath.Join(w.opts.Binaries, "vc-syncer"), args...)
}

// startOtherSyncer starts a program that runs a syncer if these arguments come
// first, and waits until its metrics can be scraped.
func (w *world) startOtherSyncer(ctx context.Context, program string, args ...string) error {
	if err := w.launch(ctx, program, args...); err != nil {
		return err
	}
	return w.awaitSyncer(ctx, func(sample) bool { return true })
}

func (w *world) launch(ctx context.Context, program string, args ...string) error {
	address, err := local.FreeAddress(ctx)
	if err != nil {
		return err
	}
	process, err := local.RunSyncer(program, w.log, append(args,
		"--kubeconfig", w.access.kubeconfig, "--metrics-bind-address", address, "--health-probe-bind-address", "0")...)
	if err != nil {
		return err
	}
	// The syncer's certificate is self-signed.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	w.syncer = &syncer{process, address, w.access.token, &http.Client{Transport: transport}}
	return nil
}

// stopSyncer stops the syncer, if one runs.
func (w *world) stopSyncer() error {
	if w.syncer == nil {
		return nil
	}
	s := w.syncer
	w.syncer = nil
	s.client.CloseIdleConnections()
	return s.process.Stop()
}

// restartSyncer replaces the running syncer with a new one.
func (w *world) restartSyncer(ctx context.Context, args ...string) error {
	return errors.Join(w.stopSyncer(), w.startSyncer(ctx, args...))
}

// sample is the state of a syncer, from its metrics and the operating system.
type sample struct {
	measure.Usage

	// Goroutines, Files and Watches are current numbers.
	Goroutines, Files, Watches float64
	// Requests counts the requests so far, except watches; Opened counts those.
	Requests local.Requests
	Opened   float64
	// Ready is the number of tenants that are synced.
	Ready float64
	// Patrols is the number of patrol rounds.
	Patrols float64
}

// sample reads the state of the syncer. It asks the operating system first,
// since scraping metrics costs the syncer CPU.
func (s *syncer) sample(ctx context.Context) (sample, error) {
	usage, err := measure.UsageOf(s.process.PID())
	if err != nil {
		return sample{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/metrics", nil)
	if err != nil {
		return sample{}, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(request)
	if err != nil {
		return sample{}, fmt.Errorf("scrape the syncer's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return sample{}, fmt.Errorf("scrape the syncer's metrics: %s", answer.Status)
	}
	read, err := parse(answer.Body)
	read.Usage = usage
	return read, err
}

// parse parses metrics in the text format of Prometheus.
func parse(text io.Reader) (sample, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return sample{}, fmt.Errorf("parse the syncer's metrics: %w", err)
	}
	s := sample{
		Goroutines: sum(families["go_goroutines"]),
		Files:      sum(families["process_open_fds"]),
		Watches:    sum(families["vc_syncer_open_watches"]),
		Requests:   local.Requests{},
	}
	for _, m := range families["vc_syncer_tenants"].GetMetric() {
		if labels(m)["reason"] == "Ready" {
			s.Ready += valueOf(m)
		}
	}
	for _, m := range families["vc_syncer_requests_total"].GetMetric() {
		s.count(labels(m), valueOf(m))
	}
	for _, m := range families["vc_syncer_patrol_duration_seconds"].GetMetric() {
		s.Patrols += float64(m.GetHistogram().GetSampleCount())
	}
	return s, nil
}

// count adds requests, except the reviews that authenticate and authorize
// scrapes.
func (s *sample) count(of map[string]string, n float64) {
	switch {
	case of["verb"] == "watch":
		s.Opened += n
	case of["resource"] != "tokenreviews" && of["resource"] != "subjectaccessreviews":
		s.Requests[strings.Join([]string{of["side"], of["verb"], of["resource"]}, " ")] += n
	}
}

// sum adds up all series of a metric.
func sum(family *dto.MetricFamily) (total float64) {
	for _, m := range family.GetMetric() {
		total += valueOf(m)
	}
	return total
}

func valueOf(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func labels(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// awaitSyncer waits until a sample of the syncer is as wanted.
func (w *world) awaitSyncer(ctx context.Context, wanted func(sample) bool) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		now, err := w.syncer.sample(ctx)
		last = err
		return err == nil && wanted(now), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the syncer: %w", errors.Join(err, last))
	}
	return nil
}

// settle waits until the syncer sends no more requests, and returns a sample.
func (w *world) settle(ctx context.Context) (sample, error) {
	var last sample
	since := time.Now()
	err := w.awaitSyncer(ctx, func(now sample) bool {
		if len(now.Requests.Since(last.Requests)) > 0 {
			since = time.Now()
		}
		last = now
		return time.Since(since) >= w.opts.Quiet
	})
	return last, err
}

// usage returns the resource usage of the syncer's process.
func (s *syncer) usage() (measure.Usage, error) { return measure.UsageOf(s.process.PID()) }
