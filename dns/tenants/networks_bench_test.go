package tenants

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Sizes of the benchmark.
const (
	benchServices = 10 // in each network
	benchClients  = 16
)

// BenchmarkNetworks measures the answers of a tenant with one network, and with
// 100, to pods of each that ask at the same time.
func BenchmarkNetworks(b *testing.B) {
	for _, networks := range []int{1, 100} {
		b.Run(fmt.Sprintf("networks=%d", networks), func(b *testing.B) {
			limits := DefaultLimits()
			limits.Rate, limits.Burst = 1<<20, 1<<20
			w := newWorld(b, limits)
			w.addNetworks(networks)
			b.ResetTimer()
			took := w.askNetworks(b, networks)
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "answers/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// networkPod returns the address of the pod of a network.
func networkPod(i int) string { return fmt.Sprintf("127.3.0.%d", 1+i) }

// addNetworks adds networks of red, each with Services and a pod.
func (w *world) addNetworks(networks int) {
	for i := range networks {
		in := map[string]string{networkv1.Label: fmt.Sprintf("network-%d", i)}
		p := podOf("red", fmt.Sprintf("pod-%d", i), networkPod(i))
		p.Labels = in
		w.add(w.directory.pods, p)
		for j := range benchServices {
			w.add(w.directory.services, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace("red", "default"), Name: fmt.Sprintf("service-%d-%d", i, j), Labels: in},
				Spec:       corev1.ServiceSpec{ClusterIPs: []string{fmt.Sprintf("10.3.%d.%d", i, j)}},
			})
		}
	}
}

// askNetworks has clients ask for b.N names, each of the network of its pod, and
// returns the times that the answers took.
func (w *world) askNetworks(b *testing.B, networks int) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var asking sync.WaitGroup
	for c := range benchClients {
		asking.Go(func() {
			var took []time.Duration
			for n := c; n < b.N; n += benchClients {
				i := n % networks
				name := fmt.Sprintf("service-%d-%d.default.svc.cluster.local.", i, n/networks%benchServices)
				began := time.Now()
				answer, err := w.ask(query{networkPod(i), "red", "udp", name, dns.TypeA, time.Second})
				if want := fmt.Sprintf("10.3.%d.%d", i, n/networks%benchServices); err != nil || text(answer) != want {
					b.Errorf("%s: %v, want %s", name, err, want)
					return
				}
				took = append(took, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	asking.Wait()
	return all
}
