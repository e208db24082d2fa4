package hosted_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const bindingsPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

// BenchmarkStoredExpressions tells what a tenant costs that stores 20,000 policies of
// one expression, or 40 of a thousand, with the default limit and without, what
// another tenant notices of it, and what a restart costs. Run it with -benchtime 1x,
// one at a time.
func BenchmarkStoredExpressions(b *testing.B) {
	for name, limit := range map[string]int64{"limited": 4000, "unlimited": 0} {
		for _, kind := range []struct {
			name                  string
			policies, expressions int
		}{{"many", 20_000, 1}, {"large", 40, 1000}} {
			b.Run(name+"/"+kind.name, func(b *testing.B) {
				for range b.N {
					beExpressive(b, limit, kind.policies, func(name string) string { return shortPolicy(name, kind.expressions) })
				}
			})
		}
	}
}

func beExpressive(b *testing.B, limit int64, number int, policy func(name string) string) {
	opts := options(b.TempDir())
	host, greedy, honest := startPair(b, opts, hosted.Spec{Expressions: limit, Shared: true})
	b.ReportMetric(resident(b), "MB-before")
	reportLatency(b, honestRequests(b, honest, 5*time.Second), "alone")

	ended := make(chan struct{})
	var stored atomic.Int64
	go func() {
		defer close(ended)
		storePolicies(b.Context(), greedy, number, policy, &stored)
	}()
	reportLatency(b, untilEnd(b, honest, ended), "beside-writes")
	write(b, greedy)            // the policies apply to it
	time.Sleep(5 * time.Second) // the last of them, a moment later
	write(b, greedy)
	b.ReportMetric(float64(stored.Load()), "stored")
	b.ReportMetric(live(b), "MB-full")

	stopBench(b, host)
	debug.FreeOSMemory()
	begin := time.Now()
	host, greedy, honest = startPair(b, opts, hosted.Spec{Expressions: limit, Shared: true})
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		write(b, greedy)
		time.Sleep(5 * time.Second)
		write(b, greedy)
	}()
	reportLatency(b, untilEnd(b, honest, ended), "beside-restart")
	b.ReportMetric(time.Since(begin).Seconds(), "s-restart")
	b.ReportMetric(live(b), "MB-restarted")
	begin = time.Now()
	_ = createPolicy(b.Context(), greedy, policy("counted"))
	b.ReportMetric(time.Since(begin).Seconds(), "s-count")
	stopBench(b, host)
}

// live is the process' memory without what is to be collected.
func live(b *testing.B) float64 {
	b.Helper()
	debug.FreeOSMemory()
	return resident(b)
}

// write creates a ConfigMap, as soon as all policies are compiled.
func write(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	for b.Context().Err() == nil {
		err := client.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/default/configmaps").
			Body([]byte(`{"metadata":{"generateName":"a-"}}`)).SetHeader("Content-Type", "application/json").Do(b.Context()).Error()
		if err == nil {
			return
		}
		b.Log(err)
	}
}

func createPolicy(ctx context.Context, client kubernetes.Interface, policy string) error {
	return client.CoreV1().RESTClient().Post().AbsPath(policiesPath).SetHeader("Content-Type", "application/json").Body([]byte(policy)).Do(ctx).Error()
}

// storePolicies creates policies with bindings, by several at a time, until one is refused.
func storePolicies(ctx context.Context, client kubernetes.Interface, number int, policy func(name string) string, stored *atomic.Int64) {
	var work sync.WaitGroup
	for worker := range 4 {
		work.Go(func() {
			for i := worker; i < number; i += 4 {
				name := fmt.Sprintf("p-%d", i)
				if err := createPolicy(ctx, client, policy(name)); err != nil {
					return
				}
				_ = client.CoreV1().RESTClient().Post().AbsPath(bindingsPath).SetHeader("Content-Type", "application/json").
					Body(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"policyName":%[1]q,"validationActions":["Deny"]}}`, name)).Do(ctx).Error()
				stored.Add(1)
			}
		})
	}
	work.Wait()
}
