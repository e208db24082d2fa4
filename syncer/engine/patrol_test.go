package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// still is a tenant's cluster that stands still.
type still struct {
	session.TenantCluster
	ill       bool
	summaries []string
}

func (s *still) Healthy() bool { return !s.ill }

// declared is a kind that is synced down, offered one that is synced up.
var (
	declared = kinds.Down[*corev1.ConfigMap]{
		Name: "ConfigMap", Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{},
		Desired: func(_ kinds.View, tenant *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{Data: tenant.DeepCopy().Data}, nil
		},
		Merge:   func(super, desired *corev1.ConfigMap) { super.Data = desired.Data },
		Replace: func(super, desired *corev1.ConfigMap) bool { return super.Data["fixed"] != desired.Data["fixed"] },
		Status: func(_ kinds.View, tenant, super *corev1.ConfigMap) {
			tenant.BinaryData = super.DeepCopy().BinaryData
		},
		Same: func(a, b *corev1.ConfigMap) bool { return cmp.Equal(a.BinaryData, b.BinaryData) },
	}
	offered = kinds.Up[*storagev1.StorageClass]{
		Name: "StorageClass", Object: &storagev1.StorageClass{}, List: &storagev1.StorageClassList{}, Class: true,
		Desired: func(_ kinds.View, super *storagev1.StorageClass) *storagev1.StorageClass {
			return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: super.Name}, Provisioner: super.Provisioner}
		},
		Merge: func(tenant, desired *storagev1.StorageClass) { tenant.Provisioner = desired.Provisioner },
	}
)

// standing is a session whose two sides stand still.
func standing(tenantHas, superHas []client.Object) (*engagement, *still) {
	there := &still{}
	s := session.Assemble(
		context.Background(), &session.SuperCluster{Caches: map[kinds.Source]*caches.Reader{}}, kindstest.Blue(),
		&session.TenantObjects{Cluster: there, TenantRecent: caches.NewRecent()},
	)
	s.Pending = pending.NewObjects(func(string, pending.State, int) {})
	tenant, super := cachestest.NewReader(), cachestest.NewReader()
	s.Caches[kinds.Copies] = super
	for _, k := range []kinds.Flow{declared, offered} {
		spec := kindstest.Typed(k)
		cachestest.Hold(tenant, spec, tenantHas...)
		cachestest.Hold(super, spec, superHas...)
		s.AddKind(spec)
	}
	s.Cache = tenant
	s.Begun.Store(true)
	return engage(&shared{SuperCluster: s.SuperCluster, metrics: newUnseenMetrics()}, s, neverSlow), there
}

// neverSlow is called when a tenant's apiserver becomes slow, which no test
// makes happen.
func neverSlow(*engagement, bool) {}

// engaging returns an engine that has engaged one tenant.
func engaging(s *engagement) *Engine {
	e := newEngine(s.shared)
	e.tenants.engaged[multicluster.ClusterName(s.Lane())] = s
	return e
}

func class(labels map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: labels}, Provisioner: "example.com/fast"}
}

// shownClass is the class as the tenant should hold it.
func shownClass(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	shown := class(session.Mark(nil))
	shown.Annotations = session.Mark(nil)
	for _, f := range change {
		f(shown)
	}
	return shown
}

func deletingNow[T client.Object](obj T) {
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
}

// TestPatrolFindsWhatNoEventToldOf: a lost event, or a bug, would leave each of
// these behind.
func TestPatrolFindsWhatNoEventToldOf(t *testing.T) {
	public := map[string]string{names.Public: "true"}
	none := []client.Object(nil)
	for name, tc := range map[string]struct {
		tenant, super []client.Object
		found         string // the kind of what is found
	}{
		"nothing is there":          {none, none, ""},
		"both sides are equal":      {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings())}, ""},
		"a copy is missing":         {[]client.Object{kindstest.Settings()}, none, "ConfigMap"},
		"a copy is left over":       {none, []client.Object{kindstest.CopyOf(kindstest.Settings())}, "ConfigMap"},
		"a copy is going":           {none, []client.Object{kindstest.CopyOf(kindstest.Settings(), deletingNow)}, ""},
		"a copy was edited":         {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Data["color"] = "red" })}, "ConfigMap"},
		"a copy lost a label":       {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { delete(c.Labels, "app") })}, "ConfigMap"},
		"a copy lost our label":     {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { delete(c.Labels, names.VCName) })}, "ConfigMap"},
		"a copy lost whose it is":   {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { delete(c.Annotations, names.Cluster) })}, "ConfigMap"},
		"a copy is of an older one": {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Annotations[names.UID] = "older" })}, "ConfigMap"},
		"a copy has to be replaced": {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Data["fixed"] = "1" })}, "ConfigMap"},
		"a copy has more labels":    {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Labels["audit"] = "1" })}, ""},
		"a copy says something new": {[]client.Object{kindstest.Settings()}, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"a": nil} })}, "ConfigMap"},
		"a foreign object has the name": {
			[]client.Object{kindstest.Settings()},
			[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-71a1c3-blue-default", Name: "settings"}}},
			"ConfigMap",
		},
		"another tenant's copy": {
			none, []client.Object{kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Annotations[names.Cluster] = "another" })}, "",
		},

		"a class is shown":                          {[]client.Object{shownClass()}, []client.Object{class(public)}, ""},
		"a class is not shown yet":                  {none, []client.Object{class(public)}, "StorageClass"},
		"a class is shown no more":                  {[]client.Object{shownClass()}, []client.Object{class(nil)}, "StorageClass"},
		"a class is gone":                           {[]client.Object{shownClass()}, none, "StorageClass"},
		"a class is going":                          {[]client.Object{shownClass(deletingNow)}, none, ""},
		"a class of the super cluster only":         {none, []client.Object{class(nil)}, ""},
		"a class was edited by the tenant":          {[]client.Object{shownClass(func(c *storagev1.StorageClass) { c.Provisioner = "mine" })}, []client.Object{class(public)}, "StorageClass"},
		"a class lost one of its marks":             {[]client.Object{shownClass(func(c *storagev1.StorageClass) { c.Labels = nil })}, []client.Object{class(public)}, "StorageClass"},
		"a class of the tenant's own":               {[]client.Object{class(nil)}, none, ""},
		"a class of the tenant's own is in the way": {[]client.Object{class(nil)}, []client.Object{class(public)}, "StorageClass"},
	} {
		t.Run(name, func(t *testing.T) {
			s, there := standing(tc.tenant, tc.super)
			var found []string
			for k, keys := range s.patrolled.Compare(t.Context(), time.Hour) {
				found = append(found, k.Name)
				for _, key := range keys {
					// Pending objects are retried anyway, and are no findings.
					s.Pending.Record(k.Name, key, pending.OutcomeOf(errors.New("no answer")), time.Now())
				}
			}
			want := []string{tc.found}
			if tc.found == "" {
				want = nil
			}
			if !slices.Equal(found, want) {
				t.Errorf("found %v, want %v", found, want)
			}
			if again := s.patrolled.Compare(t.Context(), time.Hour); len(again) > 0 {
				t.Errorf("pending objects are found again: %v", again)
			}
			there.ill = true
			if of := s.patrolled.Compare(t.Context(), time.Hour); of != nil {
				t.Errorf("of a tenant that is ill: %v", of)
			}
		})
	}
}

// TestPatrolReadsItsOwnWrites: what was written and has not come back through a
// cache is no difference.
func TestPatrolReadsItsOwnWrites(t *testing.T) {
	s, _ := standing([]client.Object{kindstest.Settings()}, nil)
	written := kindstest.CopyOf(kindstest.Settings())
	written.ResourceVersion = "7"
	s.SuperRecent.Put("ConfigMap", written)
	if found := s.patrolled.Compare(t.Context(), time.Hour); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestPatrolWaitsForTheTenant: before both sides are known, everything differs.
func TestPatrolWaitsForTheTenant(t *testing.T) {
	s, _ := standing([]client.Object{kindstest.Settings()}, nil)
	s.Begun.Store(false)
	if found := s.patrolled.Compare(t.Context(), time.Hour); found != nil {
		t.Errorf("found %v", found)
	}
	s.Begun.Store(true)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s.Ctx = gone
	if found := s.patrolled.Compare(t.Context(), time.Hour); found != nil {
		t.Errorf("of a tenant that is gone: %v", found)
	}
}

// newUnseenMetrics returns metrics that are registered nowhere else.
func newUnseenMetrics() *Metrics {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return m
}
