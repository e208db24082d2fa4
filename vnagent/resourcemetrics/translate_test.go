package resourcemetrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

var (
	red  = Tenant{Key: "tenants-c0ffee-red", Namespace: "tenants", Name: "red", UID: "uid-of-red"}
	noon = metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	all  = selection{labels: labels.Everything(), fields: fields.Everything()}
)

// shop is the only namespace that is the tenant's.
var shop = map[string]string{"tenants-c0ffee-red-shop": "shop"}

// copyOf is the copy of a pod in shop, which the super cluster has added a label to.
func copyOf(name string, change ...func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
	pod := &metav1.ObjectMeta{
		Namespace: "tenants-c0ffee-red-shop", Name: name,
		Labels:      map[string]string{"app": name, "tier": "front", "injected": "yes", names.VCName: "red"},
		Annotations: map[string]string{names.Cluster: red.Key, names.Namespace: "shop", names.Labels: "app,tier"},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// measuredOf is what the super cluster measures of a pod.
func measuredOf(pod metav1.Object, at metav1.Time, usage ...corev1.ResourceList) metricsv1beta1.PodMetrics {
	m := metricsv1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.GetNamespace(), Name: pod.GetName(), Labels: pod.GetLabels(), CreationTimestamp: noon},
		Timestamp:  at, Window: metav1.Duration{Duration: 15 * time.Second},
	}
	for _, used := range usage {
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: "main", Usage: used})
	}
	return m
}

func using(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestAdd(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   int
	}{
		"a copy":                        {func(*metav1.ObjectMeta) {}, 1},
		"a pod of the super cluster":    {func(m *metav1.ObjectMeta) { m.Annotations = nil }, 0},
		"of another tenant":             {func(m *metav1.ObjectMeta) { m.Annotations[names.Cluster] = "tenants-c0ffee-blue" }, 0},
		"of another of its namespaces":  {func(m *metav1.ObjectMeta) { m.Annotations[names.Namespace] = "default" }, 0},
		"in a namespace that is not it": {func(m *metav1.ObjectMeta) { m.Namespace = "tenants-c0ffee-red-default" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := copies{}
			c.add(red, shop, copyOf("web", tc.change), "")
			if len(c) != tc.want {
				t.Errorf("got %v", c)
			}
		})
	}
}

func TestPodMetrics(t *testing.T) {
	c := copies{}
	web, db, foreign := copyOf("web"), copyOf("db"), copyOf("web", func(m *metav1.ObjectMeta) { m.Namespace = "tenants-c0ffee-blue-shop" })
	c.add(red, shop, web, "")
	c.add(red, shop, db, "")
	c.add(red, shop, copyOf("new"), "")
	measured := []metricsv1beta1.PodMetrics{
		measuredOf(web, noon, using("10m", "1Mi"), using("5m", "2Mi")), measuredOf(foreign, noon, using("1", "1Gi")), measuredOf(db, noon),
	}
	want := measuredOf(web, noon, using("10m", "1Mi"), using("5m", "2Mi"))
	want.Namespace, want.Labels = "shop", map[string]string{"app": "web", "tier": "front"}
	shown := podMetrics(c, all, measured)
	if len(shown) != 2 || shown[0].Name != "db" {
		t.Fatalf("got %+v; want those of db and web, in this order", shown)
	}
	if diff := cmp.Diff(want, shown[1]); diff != "" {
		t.Error(diff)
	}
	if measured[0].Namespace != web.Namespace {
		t.Error("what was measured has been changed")
	}
	some := all
	some.labels = labels.SelectorFromSet(labels.Set{"injected": "yes"})
	if got := podMetrics(c, some, measured); len(got) != 0 {
		t.Errorf("a label that the super cluster added selects %+v", got)
	}
}

func TestNodeMetrics(t *testing.T) {
	c := copies{}
	var measured []metricsv1beta1.PodMetrics
	before := metav1.NewTime(noon.Add(-time.Minute))
	for _, p := range []struct {
		name, node string
		at         metav1.Time
	}{{"a", "node-1", noon}, {"b", "node-1", before}, {"c", "node-0", noon}, {"pending", "", noon}} {
		pod := copyOf(p.name)
		c.add(red, shop, pod, p.node)
		measured = append(measured, measuredOf(pod, p.at, using("10m", "1Mi"), using("20m", "2Mi")))
	}
	c.add(red, shop, copyOf("unmeasured"), "node-2")
	measured = append(measured, measuredOf(copyOf("of-nobody"), noon, using("8", "8Gi")))
	type sum struct {
		name, cpu, memory string
		at                time.Time
	}
	sums := func(s selection) (got []sum) {
		for _, m := range nodeMetrics(c, s, measured) {
			got = append(got, sum{m.Name, m.Usage.Cpu().String(), m.Usage.Memory().String(), m.Timestamp.Time})
		}
		return got
	}
	want := []sum{{"node-0", "30m", "3Mi", noon.Time}, {"node-1", "60m", "6Mi", before.Time}}
	if diff := cmp.Diff(want, sums(all), cmp.AllowUnexported(sum{})); diff != "" {
		t.Error(diff)
	}
	one := all
	one.name = "node-1"
	if diff := cmp.Diff(want[1:], sums(one), cmp.AllowUnexported(sum{})); diff != "" {
		t.Error(diff)
	}
	if got := measured[0].Containers[0].Usage.Cpu().String(); got != "10m" {
		t.Errorf("what was measured has become %s", got)
	}
}
