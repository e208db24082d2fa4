package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// TestNoHandlerWaitsForAnotherKind: a handler that reads a cache which is not
// full would hold up the informer that calls it.
func TestNoHandlerWaitsForAnotherKind(*testing.T) {
	e := newEngine(&shared{SuperCluster: &session.SuperCluster{}, watching: make(chan struct{}), metrics: newUnseenMetrics()}).events
	e.tenants.engaged["blue"] = &engagement{}
	node := kinds.Up[*corev1.Node]{Name: session.NodeKind, Object: &corev1.Node{}, Node: true}.Erase()
	events := kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}}.Erase()
	// There is nothing that they could read.
	e.superHandler(node).OnAdd(&corev1.Node{}, true)
	e.superHandler(events).OnAdd(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-default"}}, true)
}
