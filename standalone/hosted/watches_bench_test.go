package hosted_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
)

// BenchmarkIdleWatches tells what the process holds for watches of a tenant with long
// selectors or headers, and what another tenant notices of them: alone, beside them,
// and while objects change with which the selectors are compared. Run it with
// -benchtime 1x.
func BenchmarkIdleWatches(b *testing.B) {
	for _, watches := range []struct {
		name             string
		number           int
		selector, header string
	}{
		{name: "ordinary", number: 1000, selector: "a"},
		{name: "990 values", number: 1000, selector: "a in (" + numbers(990) + ")"},
		{name: "990 requirements", number: 1000, selector: requirements(990)},
		{name: "60 KB of headers", number: 1000, selector: "a", header: strings.Repeat("x", 60_000)},
		{name: "30,000 requirements", number: 200, selector: requirements(30_000)},
		{name: "450,000 requirements", number: 50, selector: requirements(450_000)},
	} {
		b.Run(watches.name, func(b *testing.B) {
			for range b.N {
				host, hostile, honest := startPair(b, options(b.TempDir()), hosted.Spec{
					Shared: true, Requests: inflight.Limits{Reads: 100, Writes: 50, Watches: 1000},
				})
				reportLatency(b, honestRequests(b, honest, 5*time.Second), "alone")
				plane, _ := host.Get("greedy")
				before := live(b)
				open, end := idleWatches(b, plane.RESTConfig(), watches.number, watches.selector, watches.header)
				b.ReportMetric(float64(open), "watches")
				b.ReportMetric(live(b)-before, "MB")
				reportLatency(b, honestRequests(b, honest, 5*time.Second), "beside")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					b.ReportMetric(float64(changeFor(b.Context(), hostile, 5*time.Second)), "changes")
				}()
				reportLatency(b, untilEnd(b, honest, ended), "changing")
				end()
				stopBench(b, host)
			}
		})
	}
}

// changeFor creates objects one after another, and returns how many. All
// requirements of the selectors are true for them, except for the last.
func changeFor(ctx context.Context, client kubernetes.Interface, while time.Duration) (changes int) {
	for begin := time.Now(); time.Since(begin) < while; changes++ {
		_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "b-", Labels: map[string]string{"a": "989"}},
		}, metav1.CreateOptions{}) // it may be refused for a while
	}
	return changes
}

// requirements returns a label selector with n requirements.
func requirements(n int) string { return strings.Repeat("a,", n-1) + "a" }

// numbers returns the numbers below n.
func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return strings.Join(list, ",")
}

// idleWatches opens watches that no object is sent to, and returns how many are
// open, and a function that ends them.
func idleWatches(b *testing.B, config *rest.Config, number int, selector, header string) (opened int64, end func()) {
	b.Helper()
	const perConnection = 50
	at, err := url.Parse(config.Host + "/api/v1/configmaps?watch=1&resourceVersion=1&labelSelector=" + strings.ReplaceAll(selector, " ", "+") + ",b")
	if err != nil {
		b.Fatal(err)
	}
	var open, answered atomic.Int64
	var work sync.WaitGroup
	ctx, stop := context.WithCancel(b.Context())
	for range number / perConnection {
		own := rest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext // it shares no connections then
		client, err := rest.HTTPClientFor(own)
		if err != nil {
			b.Fatal(err)
		}
		get := func(at *url.URL, then func(*http.Response)) {
			r := (&http.Request{Method: http.MethodGet, URL: at, Header: http.Header{"X-Long": {header}}}).WithContext(ctx)
			response, err := client.Do(r)
			if err == nil {
				then(response)
				_ = response.Body.Close()
			}
		}
		get(&url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/version"}, func(*http.Response) {}) // which connects for all
		for range perConnection {
			work.Go(func() {
				defer answered.Add(1)
				get(at, func(response *http.Response) {
					if response.StatusCode == http.StatusOK {
						open.Add(1)
						answered.Add(1)
						<-ctx.Done()
					}
				})
			})
		}
	}
	for answered.Load() < int64(number) && ctx.Err() == nil {
		time.Sleep(tick)
	}
	return open.Load(), func() {
		stop()
		work.Wait()
	}
}
