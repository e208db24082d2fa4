package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// TestLatency follows a pod from the tenant's event until it runs, and until it
// is gone.
func TestLatency(t *testing.T) {
	declared := kindstest.Plain()
	declared.Mirror = kindstest.Rich().Mirror
	declared.Mirror.Running = func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
	k := kindstest.Typed(declared)
	pod := kindstest.PodIn("default", "web")
	pod.UID = "uid-of-web"
	running := pod.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	superKey := k.Down.SuperKey(kindstest.Blue(), client.ObjectKeyFromObject(pod))
	copied := kindstest.PodIn(superKey.Namespace, superKey.Name)
	copied.Annotations = map[string]string{names.Cluster: kindstest.Blue().Key, names.UID: "uid-of-web"}
	older := copied.DeepCopy()
	older.Annotations[names.UID] = "uid-of-an-older-one"
	for name, tc := range map[string]struct {
		tenant, super []client.Object
		want          map[string]uint64 // by what it lasts until
		ends          bool
	}{
		"not copied":                       {tenant: []client.Object{pod}},
		"the copy is of an older pod":      {tenant: []client.Object{pod}, super: []client.Object{older}},
		"copied":                           {tenant: []client.Object{pod}, super: []client.Object{copied}, want: map[string]uint64{"copied": 1}},
		"running":                          {[]client.Object{running}, []client.Object{copied}, map[string]uint64{"copied": 1, "running": 1}, true},
		"deleted before it had a copy":     {ends: true},
		"deleted, and its copy terminates": {super: []client.Object{copied}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := standing(nil, nil)
			metrics, registry := newTestMetrics(t)
			cachestest.Hold(s.Cache, k, tc.tenant...)
			cachestest.Hold(s.CacheOf(k), k, tc.super...)
			s.AddKind(k)
			key := client.ObjectKeyFromObject(pod)
			s.latencies.begin(k, key, time.Now())
			for range 2 { // the second reconcile observes nothing again
				if err := s.latencies.measure(t.Context(), s.Session, metrics, k, key); err != nil {
					t.Fatal(err)
				}
			}
			var got map[string]uint64
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, series := range f.GetMetric() {
					if f.GetName() == "vc_syncer_latency_seconds" {
						if got == nil {
							got = map[string]uint64{}
						}
						got[series.GetLabel()[1].GetValue()] = series.GetHistogram().GetSampleCount()
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("latencies (-want +got):\n%s", diff)
			}
			if _, measured := s.latencies.get(k, key); measured == tc.ends {
				t.Errorf("the measurement continues: %t", measured)
			}
		})
	}
}

// TestLatencyOfWhatMayNeverBeNeeded: objects on demand and those of the super
// cluster are not measured.
func TestLatencyOfWhatMayNeverBeNeeded(t *testing.T) {
	s, _ := standing(nil, nil)
	onDemand := *s.Kind("ConfigMap")
	down := *onDemand.Down
	down.OnDemand = true
	onDemand.Down = &down
	for _, k := range []string{"ConfigMap", "StorageClass"} {
		kind := s.Kind(k)
		if k == "ConfigMap" {
			kind = &onDemand
		}
		s.latencies.begin(kind, kindstest.WebKey(), time.Now())
	}
	if len(s.latencies.known) != 0 {
		t.Errorf("measured: %v", s.latencies.known)
	}
}
