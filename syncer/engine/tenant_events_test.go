package engine

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

func TestOnlyStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"the status":                            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"what says who":                         {func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "syncer"}} }, true},
		"the spec":                              {func(p *corev1.Pod) { p.Generation++ }, false},
		"an unknown spec":                       {func(p *corev1.Pod) { p.Generation = 0 }, false},
		"a label":                               {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }, false},
		"an annotation":                         {func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "x"} }, false},
		"a finalizer":                           {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} }, false},
		"its deletion":                          {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"everything: it is another of the name": {func(p *corev1.Pod) { p.UID = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
			now := was.DeepCopy()
			tt.change(now)
			if got := onlyStatus(was, now); got != tt.want {
				t.Errorf("onlyStatus is %t, want %t", got, tt.want)
			}
		})
	}
}

func TestIsUp(t *testing.T) {
	m := &kinds.Mirror[client.Object]{GracePeriodSeconds: func(obj client.Object) *int64 { return obj.GetDeletionGracePeriodSeconds() }}
	deleted := func(seconds int64, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: &seconds, Finalizers: finalizers,
		}}
	}
	for name, tt := range map[string]struct {
		m        *kinds.Mirror[client.Object]
		was, now *corev1.Pod
		want     bool
	}{
		"its time has come to an end":     {m, deleted(30), deleted(0), true},
		"its time got shorter":            {m, deleted(30), deleted(5), false},
		"a finalizer holds it":            {m, deleted(30), deleted(0, "example.com/wait"), false},
		"it never had any time":           {m, &corev1.Pod{}, deleted(0), false},
		"it is not deleted":               {m, &corev1.Pod{}, &corev1.Pod{}, false},
		"it is of a kind that takes none": {nil, deleted(30), deleted(0), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := graceExpired(tt.m, tt.was, tt.now); got != tt.want {
				t.Errorf("graceExpired is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestInitialPriority: when a syncer starts, pods without a copy are reconciled
// before other objects.
func TestInitialPriority(t *testing.T) {
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		obj  client.Object
		want int
	}{
		"a pod that has had no copy":       {kindstest.Rich().Erase(), kindstest.Named("new"), queue.PriorityNormal},
		"a pod that has had one":           {kindstest.Rich().Erase(), kindstest.Named("started"), queue.PriorityLow},
		"what does not live with its copy": {kindstest.Plain().Erase(), kindstest.Named("new"), queue.PriorityLow},
		"what is shown":                    {kinds.Up[*corev1.Pod]{}.Erase(), kindstest.Named("new"), queue.PriorityLow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := initialPriority(tc.kind, tc.obj); got != tc.want {
				t.Errorf("its priority is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestOrder: what is under way comes before what begins, whichever the tenant
// or the super cluster told of first.
func TestOrder(t *testing.T) {
	begun := kindstest.Settings()
	s, _ := standing([]client.Object{begun}, nil)
	s.Queue = fairqueue.New(queue.Request.Lane, fairqueue.Options{})
	defer s.Queue.ShutDown()
	k := s.Kind("ConfigMap")
	other := func(name string) *corev1.ConfigMap {
		obj := kindstest.Settings()
		obj.Name, obj.UID = name, types.UID(name)
		return obj
	}
	leaving := other("going")
	deletingNow(leaving)

	tenant, super := s.events.handler(k), engaging(s).events.copyHandler(k)
	tenant.OnAdd(other("new"), false)
	tenant.OnUpdate(other("changed"), other("changed"))
	tenant.OnUpdate(other("going"), leaving)
	super.OnUpdate(kindstest.CopyOf(begun), kindstest.CopyOf(begun))
	tenant.OnDelete(other("gone"))

	var got []string
	for range s.Queue.Len() {
		r, _ := s.Queue.Get()
		s.Queue.Done(r)
		got = append(got, r.Key.Name)
	}
	if want := []string{begun.Name, "gone", "new", "changed", "going"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}
