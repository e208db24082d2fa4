package syncup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestLastShown(t *testing.T) {
	node := kinds.ObjectKey{Kind: "Node", Key: client.ObjectKey{Name: "node-1"}}
	cordoned := digestOf(&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}})
	plain := digestOf(&corev1.Node{})
	if cordoned == plain {
		t.Error("two states have one digest")
	}
	a := lastShown{}
	if a.is(node, plain) || a.is(node, 0) {
		t.Error("nothing was shown yet, so the tenant cannot have changed it")
	}
	a.put(node, plain)
	if !a.is(node, plain) || a.is(node, cordoned) || a.is(kinds.ObjectKey{Kind: "Node", Key: client.ObjectKey{Name: "node-2"}}, plain) {
		t.Error("it is not what was shown last of this node")
	}
	a.put(node, cordoned)
	if a.is(node, plain) {
		t.Error("it is what was shown before")
	}
	a.forget(node)
	if a.is(node, cordoned) || len(a.shown) > 0 {
		t.Error("the node is still known")
	}
}
