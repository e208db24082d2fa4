package simulated

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

const current = "v1.36.3"

// clusterWith is a cluster with objects. It is of the current version, and lists
// pods by their node.
func clusterWith(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	discovery, ok := client.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		t.Fatalf("discovery is by %T", client.Discovery())
	}
	discovery.FakedServerVersion = &version.Info{GitVersion: current}
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "")
		list, isPods := obj.(*corev1.PodList)
		listed, isList := action.(clienttesting.ListAction)
		if err == nil && isPods && isList {
			list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
				return !listed.GetListRestrictions().Fields.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName})
			})
		}
		return true, obj, err
	})
	return client
}

// described is the i-th node as this program leaves it.
func described(i int) *corev1.Node {
	node := newNode(i)
	describe(&node.Status, node.Name, current)
	return node
}

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}, Spec: corev1.PodSpec{NodeName: node},
	}
}

// inCluster are the names of all nodes and pods.
func inCluster(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	pods, failed := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return strings.Join(names, " ")
}

// writes are the requests that change something, and what they change.
func writes(client *fake.Clientset) []string {
	var all []string
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			all = append(all, strings.TrimSuffix(verb+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/"))
		}
	}
	return all
}

// TestEnsure: there are as many nodes as wanted, whatever there was before.
func TestEnsure(t *testing.T) {
	tainted, old, theirs := described(1), described(1), described(3)
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady}}
	old.Status.NodeInfo.KubeletVersion = "v1.35.0"
	theirs.Labels = nil // created by an admin
	for name, c := range map[string]struct {
		objects []runtime.Object
		count   int
		want    string
		writes  []string
	}{
		"none, none wanted": {nil, 0, "", nil},
		"all are missing":   {nil, 2, "node-1 node-2", []string{"create nodes", "update nodes/status", "create nodes", "update nodes/status"}},
		"all are there":     {[]runtime.Object{described(1), described(2)}, 2, "node-1 node-2", nil},
		"one is new":        {[]runtime.Object{tainted}, 1, "node-1", []string{"update nodes"}},
		"an older version":  {[]runtime.Object{old}, 1, "node-1", []string{"update nodes/status"}},
		"too many, with pods": {
			[]runtime.Object{described(1), described(2), podOn("node-1", "stays"), podOn("node-2", "goes"), podOn("", "waits")}, 1,
			"node-1 stays waits", []string{"delete nodes", "delete pods"},
		},
		"another owner's": {[]runtime.Object{theirs, podOn("node-3", "stays")}, 1, "node-1 node-3 stays", []string{"create nodes", "update nodes/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := clusterWith(t, c.objects...)
			if err := ensure(t.Context(), client, c.count); err != nil {
				t.Fatal(err)
			}
			if got := writes(client); !slices.Equal(got, c.writes) {
				t.Errorf("the writes are %v, want %v", got, c.writes)
			}
			if got := inCluster(t, client); got != c.want {
				t.Errorf("there are %q, want %q", got, c.want)
			}
			client.ClearActions()
			if err := ensure(t.Context(), client, c.count); err != nil || len(writes(client)) > 0 {
				t.Errorf("the second time, the writes are %v (%v)", writes(client), err)
			}
		})
	}
}

// TestEnsureFails: each step that fails says what was attempted, and those that
// only come too late are no failure.
func TestEnsureFails(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	gone, changed, refused := apierrors.NewNotFound(resource, "x"), apierrors.NewConflict(resource, "x", nil), apierrors.NewForbidden(resource, "x", nil)
	for _, c := range []struct {
		verb, resource string
		err            error
		want           string // empty for none
	}{
		{"get", "version", refused, "the version of the super cluster: "},
		{"get", "nodes", refused, "node node-1: "},
		{"create", "nodes", refused, "node node-1: "},
		{"create", "nodes", apierrors.NewAlreadyExists(resource, "x"), "node node-1: "},
		{"update", "nodes", refused, "node node-1: "},
		{"list", "nodes", refused, "list nodes: "},
		{"delete", "nodes", refused, "node node-2: "},
		{"delete", "nodes", gone, ""},
		{"list", "pods", refused, "pods on node node-2: "},
		{"delete", "pods", refused, "pod default/goes from node node-2: "},
		{"delete", "pods", gone, ""},
		{"delete", "pods", changed, ""},
	} {
		t.Run(c.verb+" "+c.resource+" "+string(apierrors.ReasonForError(c.err)), func(t *testing.T) {
			client := clusterWith(t, described(2), podOn("node-2", "goes"))
			client.PrependReactor(c.verb, c.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			err := ensure(t.Context(), client, 1)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAwaitReady: as many nodes as wanted are awaited, and not for ever.
func TestAwaitReady(t *testing.T) {
	ready := described(1)
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	client := clusterWith(t, ready, described(2))
	if err := awaitReady(t.Context(), client, 1); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { cancel(); return false, nil, nil })
	if err := awaitReady(ctx, client, 2); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for 2 nodes") {
		t.Errorf("told to stop: got %v", err)
	}
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, io.ErrUnexpectedEOF })
	if err := awaitReady(t.Context(), client, 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nodes cannot be listed: got %v", err)
	}
}

// TestSweep: pods that are left are deleted by their UID, and one that cannot be
// is no reason to leave the others.
func TestSweep(t *testing.T) {
	now := time.Now()
	half := func(name string) *corev1.Pod {
		pod := podOn("node-1", name)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-time.Minute)}, new(int64(0))
		return pod
	}
	client := clusterWith(t, half("a"), half("b"), podOn("node-1", "c"))
	client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion, ok := action.(clienttesting.DeleteActionImpl)
		if !ok || *deletion.DeleteOptions.Preconditions.UID != "1" || *deletion.DeleteOptions.GracePeriodSeconds != 0 {
			t.Errorf("the request is %v", action)
		}
		return deletion.Name == "a", nil, io.ErrUnexpectedEOF
	})
	if err := sweep(t.Context(), client, now); err != nil {
		t.Error(err)
	}
	if got := inCluster(t, client); got != "a c" {
		t.Errorf("there are %q", got)
	}
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, io.ErrUnexpectedEOF })
	if err := sweep(t.Context(), client, now); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endLeft(ctx, client) // returns
}

// TestClusterThatIsNone: a cluster that is not there is an error at once.
func TestClusterThatIsNone(t *testing.T) {
	for host, want := range map[string]string{"not a URL": "a client for nodes", "127.0.0.1:1": "refused"} {
		config := &rest.Config{Host: host}
		for name, err := range map[string]error{
			"run": Run(t.Context(), config, 1, io.Discard), "remove": RemoveAll(t.Context(), config),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s at %s: got %v, want %q", name, host, err, want)
			}
		}
	}
}
