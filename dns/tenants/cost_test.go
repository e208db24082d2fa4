//go:build !race

// The race detector takes memory of its own.

package tenants

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Sizes of the measurement.
const (
	costTenants      = 500
	costServices     = 20
	costPods         = 50
	costLimitIdle    = 128 << 10
	costLimitWorking = 512 << 10
)

// TestCost prints the memory that one more tenant adds, idle and with Services
// and pods, and fails where it is far above what was decided on.
func TestCost(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	before, goroutines := resident(t), runtime.NumGoroutine()
	for i := range costTenants {
		w.addTenant(fmt.Sprintf("t%d", i), fmt.Sprintf("10.%d", 20+i%200), fmt.Sprintf("127.1.%d.%d", i/256, i%256))
	}
	if !w.reconcile(t.Context()) {
		t.Fatal("the ports are not open")
	}
	w.askAll()
	idle := resident(t)
	w.report("a tenant with 4 Services and a pod, after two queries", (idle-before)/costTenants, costLimitIdle)
	t.Logf("%.1f goroutines a tenant", float64(runtime.NumGoroutine()-goroutines)/costTenants)
	w.populate()
	w.askAll()
	w.report(fmt.Sprintf("a tenant with %d more Services and %d more pods", costServices, costPods), (resident(t)-before)/costTenants, costLimitWorking)
}

// TestCostOfNetworks prints the memory of Services and pods of a tenant on one
// network, and of as many on a hundred.
func TestCostOfNetworks(t *testing.T) {
	const objects, limit = 5000, 16 << 20
	for _, networks := range []int{1, 100} {
		w := newWorld(t, DefaultLimits())
		before := resident(t)
		for i := range objects {
			in := map[string]string{networkv1.Label: fmt.Sprintf("network-%d", i%networks)}
			pod := podOf("red", fmt.Sprintf("pod-%d", i), fmt.Sprintf("10.4.%d.%d", i/256, i%256))
			pod.Labels = in
			w.add(w.directory.pods, pod)
			w.add(w.directory.services, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace("red", "default"), Name: fmt.Sprintf("service-%d", i), Labels: in},
				Spec:       corev1.ServiceSpec{ClusterIPs: []string{fmt.Sprintf("10.3.%d.%d", i/256, i%256)}},
			})
		}
		w.report(fmt.Sprintf("%d Services and as many pods, networks: %d", objects, networks), resident(t)-before, limit)
	}
}

// askAll sends each tenant queries by UDP and TCP.
func (w *world) askAll() {
	w.t.Helper()
	for i := range costTenants {
		client, key := fmt.Sprintf("127.1.%d.%d", i/256, i%256), fmt.Sprintf("t%d", i)
		want := fmt.Sprintf("10.%d.0.80", 20+i%200)
		for _, network := range []string{"udp", "tcp"} {
			w.shouldAnswer(query{client, key, network, web, dns.TypeA, 5 * time.Second}, want)
		}
	}
}

// populate adds Services with endpoints, and pods, to each tenant.
func (w *world) populate() {
	w.t.Helper()
	for i := range costTenants {
		key := fmt.Sprintf("t%d", i)
		for j := range costServices {
			meta := metav1.ObjectMeta{Namespace: key + "-default", Name: fmt.Sprintf("service-%d", j), ResourceVersion: strconv.Itoa(i*1000 + j)}
			w.add(w.directory.services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
				ClusterIPs: []string{fmt.Sprintf("10.%d.%d.%d", 64+i/256, i%256, j)}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
			}})
			meta.Labels = map[string]string{discoveryv1.LabelServiceName: meta.Name}
			slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}}}
			for k := range 3 {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 128+k, i%256, j)}})
			}
			w.add(w.directory.slices, slice)
		}
		for j := range costPods {
			w.addPod(key, fmt.Sprintf("pod-%d", j), fmt.Sprintf("10.%d.%d.%d", 192+i/256, i%256, j))
		}
	}
}

func (w *world) report(what string, bytes, limit int) {
	w.t.Helper()
	w.t.Logf("%s: %d KiB", what, bytes>>10)
	if bytes > limit {
		w.t.Errorf("%s costs %d bytes, and may cost %d", what, bytes, limit)
	}
}

// resident returns the resident memory of this process without garbage.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the memory of the process is not known here")
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
