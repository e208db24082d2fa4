package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// TestInitialPriority: of what a syncer finds when it starts, pods that have had no copy are looked at first.
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

// TestNoHandlerWaitsForAnotherKind: a handler that reads a cache which is not full would hold up the informer that calls it.
func TestNoHandlerWaitsForAnotherKind(*testing.T) {
	e := newEngine(&shared{SuperCluster: &session.SuperCluster{}, watching: make(chan struct{}), metrics: newUnseenMetrics()}).events
	e.tenants.engaged["blue"] = &engagement{}
	node := kinds.Up[*corev1.Node]{Name: session.NodeKind, Object: &corev1.Node{}, Node: true}.Erase()
	events := kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}}.Erase()
	// There is nothing that they could read.
	e.superHandler(node).OnAdd(&corev1.Node{}, true)
	e.superHandler(events).OnAdd(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-default"}}, true)
}
