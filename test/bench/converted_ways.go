package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// pods is the path of the pods of a namespace.
const pods = "/api/v1/namespaces/%s/pods"

// convertedPair has the ways to the objects of a converted tenant.
type convertedPair struct {
	pair

	// super is its namespace in the super cluster.
	super string
}

// convertedRequest is a request that is compared. Its path has a namespace.
type convertedRequest struct {
	name, path string
	create     bool
}

// convertedPair returns the ways to a converted tenant: through this gateway, and
// to its objects in the super cluster.
func (g *gateway) convertedPair(ctx context.Context, super *local.SuperCluster, t *local.Tenant) (convertedPair, error) {
	direct, err := rest.TLSConfigFor(super.Config)
	if err != nil {
		return convertedPair{}, fmt.Errorf("read the TLS settings of the super cluster's kubeconfig: %w", err)
	}
	through, err := rest.TLSConfigFor(t.Config)
	if err != nil {
		return convertedPair{}, fmt.Errorf("read the TLS settings of the tenant's kubeconfig: %w", err)
	}
	through = &tls.Config{RootCAs: g.roots, Certificates: through.Certificates, GetClientCertificate: through.GetClientCertificate}
	p := convertedPair{super: t.Super(shop), pair: pair{
		direct:  &way{"directly", super.Config.Host, super.Config.BearerToken, clientOf(direct)},
		through: &way{"converted", "https://" + g.address + "/tenants/" + t.Key(), "", clientOf(through)},
	}}
	return p, wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		return p.through.send(ctx, convertedRequest{path: pods}, shop) == nil, nil
	})
}

// send sends a request for objects of a namespace, and reads the response.
func (w *way) send(ctx context.Context, request convertedRequest, namespace string) error {
	_, err := w.read(ctx, request, fmt.Sprintf(request.path, namespace))
	return err
}

// read sends a request, and returns the size of the response.
func (w *way) read(ctx context.Context, request convertedRequest, path string) (size int64, err error) {
	method, body := http.MethodGet, ""
	if request.create {
		method, body = http.MethodPost, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"bench-"},"data":{"a":"b"}}`
	}
	r, err := http.NewRequestWithContext(ctx, method, w.server+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode >= http.StatusMultipleChoices {
		message, _ := io.ReadAll(response.Body) // a part of it tells enough
		return 0, fmt.Errorf("%s %s %s: status %d: %s", method, path, w.name, response.StatusCode, message)
	}
	return io.Copy(io.Discard, response.Body)
}

// compare measures a request one by one, alternately on both ways.
func (p convertedPair) compare(ctx context.Context, s *report.Scenario, request convertedRequest, count int) error {
	times := map[*way][]time.Duration{}
	for range count {
		for each, namespace := range map[*way]string{p.direct: p.super, p.through: shop} {
			began := time.Now()
			if err := each.send(ctx, request, namespace); err != nil {
				return err
			}
			times[each] = append(times[each], time.Since(began))
		}
	}
	direct, through := s.AddLatency(request.name+" directly", times[p.direct]), s.AddLatency(request.name+", converted", times[p.through])
	last := func(row report.Row) float64 { return row.Runs[len(row.Runs)-1] }
	s.Add(request.name+", p50, converted to directly", "", last(through.P50)/last(direct.P50), count).Want("≤ 1.3")
	s.Add(request.name+", p99, converted to directly", "", last(through.P99)/last(direct.P99), count)
	return nil
}

// listCost measures what a list takes in the gateway, and what the gateway reads
// for it: the request and the response of the super cluster.
func (g *gateway) listCost(ctx context.Context, s *report.Scenario, p convertedPair, path, name string, count int) error {
	before, err := g.usage()
	if err != nil {
		return err
	}
	readBefore, err := measure.ReadBy(g.process.Process.Pid)
	if err != nil {
		return err
	}
	var times []time.Duration
	var size int64
	for range max(count, 1) {
		began := time.Now()
		if size, err = p.through.read(ctx, convertedRequest{}, path); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	after, err := g.usage()
	if err != nil {
		return err
	}
	readAfter, err := measure.ReadBy(g.process.Process.Pid)
	if err != nil {
		return err
	}
	each := float64(len(times))
	s.AddLatency(name, times)
	s.Add("processor time of the gateway for "+name, "ms", measure.Milliseconds(after.CPU-before.CPU)/each, len(times))
	s.Add("read by the gateway for "+name, "KiB", float64(readAfter-readBefore)/1024/each, len(times))
	s.Add("response to "+name, "KiB", float64(size)/1024, 1)
	return nil
}
