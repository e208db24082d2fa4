package syncdown

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// nodes records which virtual nodes are ensured.
type nodes struct {
	ensured []string
	err     error
}

func (n *nodes) EnsureNode(_ context.Context, name string) error {
	n.ensured = append(n.ensured, name)
	return n.err
}

func TestStatusDiffers(t *testing.T) {
	on := func(node, message string) *corev1.Pod {
		pod := kindstest.Named("web")
		pod.Spec.NodeName, pod.Status.Message = node, message
		return pod
	}
	k := kindstest.Rich().Erase()
	for name, tc := range map[string]struct {
		tenant, super *corev1.Pod
		want          bool
	}{
		"both are up to date":         {on("node-1", "ready for blue"), on("node-1", "ready"), false},
		"the status differs":          {on("node-1", "waiting for blue"), on("node-1", "ready"), true},
		"the pod is not bound yet":    {on("", "ready for blue"), on("node-1", "ready"), true},
		"neither has a node":          {on("", "ready for blue"), on("", "ready"), false},
		"a deleted pod is not bound":  {deleted(on("", "ready for blue")), on("node-1", "ready"), false},
		"the status of a deleted one": {deleted(on("", "")), on("", "ready"), true},
	} {
		t.Run(name, func(t *testing.T) {
			blue := session.NewTenant(kindstest.Blue())
			s := &statusSyncer{Tenant: blue, view: of{blue}}
			if got := s.differs(t.Context(), k, session.Objects{Tenant: tc.tenant, Super: tc.super}); got != tc.want {
				t.Errorf("it differs: %t, want %t", got, tc.want)
			}
		})
	}
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = new(metav1.Now())
	return pod
}

// TestBindEnsuresTheNode: a pod is not bound to a node that the tenant does not
// have.
func TestBindEnsuresTheNode(t *testing.T) {
	failed := errors.New("the tenant's apiserver does not answer")
	super := kindstest.Named("web")
	super.Spec.NodeName = "node-1"
	n := &nodes{err: failed}
	s := &statusSyncer{nodes: n} // without a client, a binding would panic
	_, err := s.bind(t.Context(), kindstest.Rich().Erase(), session.Objects{Tenant: kindstest.Named("web"), Super: super})
	if !errors.Is(err, failed) || len(n.ensured) != 1 || n.ensured[0] != "node-1" {
		t.Errorf("got %v; ensured are %v", err, n.ensured)
	}
}
