package views_test

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// BenchmarkViews tells what the views of a tenant cost: requested only, as most
// of those of admission plugins are, and with 100 pods that were read. Run it
// with -benchtime 1x.
func BenchmarkViews(b *testing.B) {
	const tenants, pods = 100, 100
	s := startStore(b)
	for range b.N {
		base, goroutines := footprint()
		all := make([]*views.Views, tenants)
		informers := make([]cache.SharedIndexInformer, tenants)
		for i := range tenants {
			all[i] = s.views(tenantName(i))
			informers[i] = request(all[i].NewFactory())
		}
		requested, running := footprint()
		b.ReportMetric((requested-base)/tenants/(1<<10), "requested-heap-kB/tenant")
		b.ReportMetric(running-goroutines, "requested-goroutines")
		for i := range tenants {
			for j := range pods {
				object := pod(fmt.Sprint("web-", j), fmt.Sprint(j))
				object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(string(make([]byte, 1024)))}}
				s.Put(tenantName(i), "pods", object)
			}
			if got := len(informers[i].GetStore().List()); got != pods {
				b.Fatalf("%d pods", got)
			}
		}
		read, running := footprint()
		b.ReportMetric(running-goroutines, "read-goroutines")
		for i := range tenants {
			all[i].Trim()
			all[i].Trim()
		}
		trimmed, _ := footprint() // etcd has the pods in memory, too
		b.ReportMetric((read-trimmed)/tenants/(1<<10), "read-heap-kB/tenant")
		runtime.KeepAlive(informers)
	}
}

func tenantName(i int) string { return fmt.Sprint("t", i) }

// request requests the informers that the default admission plugins do.
func request(f *views.Factory) cache.SharedIndexInformer {
	for _, each := range []cache.SharedIndexInformer{
		f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer(),
		f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer(),
		f.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer(),
		f.Admissionregistration().V1().ValidatingAdmissionPolicyBindings().Informer(),
		f.Core().V1().Namespaces().Informer(), f.Core().V1().LimitRanges().Informer(),
		f.Core().V1().ResourceQuotas().Informer(), f.Core().V1().ServiceAccounts().Informer(),
		f.Core().V1().Nodes().Informer(), f.Core().V1().PersistentVolumes().Informer(),
		f.Core().V1().PersistentVolumeClaims().Informer(), f.Networking().V1().IngressClasses().Informer(),
		f.Node().V1().RuntimeClasses().Informer(), f.Scheduling().V1().PriorityClasses().Informer(),
		f.Storage().V1().StorageClasses().Informer(),
	} {
		each.GetIndexer()
	}
	return f.Core().V1().Pods().Informer()
}

func footprint() (heap, goroutines float64) {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}
