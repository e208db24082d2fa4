package policies

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
)

// enforcing returns an enforcer whose caches hold objects.
func enforcing(t *testing.T, objects ...any) *enforcer {
	t.Helper()
	pods, namespaces, policies := indexer(), indexer(), indexer()
	for _, obj := range objects {
		store := pods
		switch obj.(type) {
		case *corev1.Namespace:
			store = namespaces
		case *networkingv1.NetworkPolicy:
			store = policies
		}
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &enforcer{
		pods: corelisters.NewPodLister(pods), namespaces: corelisters.NewNamespaceLister(namespaces),
		policies:  networkinglisters.NewNetworkPolicyLister(policies),
		sandboxes: &sandboxes{changed: func() {}, of: map[types.UID]sandbox{}}, changes: make(chan struct{}, 1),
	}
}

func indexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func podAt(name, address string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	pod.Status.PodIP = address
	for _, f := range change {
		f(pod)
	}
	return pod
}

func TestAddressOfAPod(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"that runs":                 {podAt("web", "10.0.0.1"), "10.0.0.1"},
		"that has none yet":         {podAt("web", ""), "invalid IP"},
		"in the node's network":     {podAt("web", "198.19.0.2", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), "invalid IP"},
		"that has succeeded":        {podAt("web", "10.0.0.1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), "invalid IP"},
		"that has failed":           {podAt("web", "10.0.0.1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "invalid IP"},
		"that its sandbox is ahead": {podAt("fresh", ""), "10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			e := enforcing(t)
			e.sandboxes.of["fresh"] = sandbox{id: "s", address: netip.MustParseAddr("10.0.0.9")}
			if got := e.address(c.pod).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestClusterIsInOrder: the same objects make the same cluster, whatever the
// order of the caches, so that a filter is not installed twice.
func TestClusterIsInOrder(t *testing.T) {
	policy := func(namespace, name string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	with := func(pod *corev1.Pod) {
		pod.Spec.Containers = []corev1.Container{
			{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}},
			{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 90}}},
		}
		pod.Spec.InitContainers = []corev1.Container{
			{Ports: []corev1.ContainerPort{{Name: "setup", ContainerPort: 91}}},
			{
				RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Ports:         []corev1.ContainerPort{{Name: "sidecar", ContainerPort: 92}},
			},
		}
	}
	e := enforcing(t,
		podAt("b", "10.0.0.2"), podAt("waits", ""), podAt("a", "10.0.0.10", with), podAt("c", "10.0.0.1"),
		policy("till", "a"), policy("shop", "b"), policy("shop", "a"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"tier": "front"}}},
	)
	c, err := e.cluster()
	if err != nil {
		t.Fatal(err)
	}
	var pods, policies []string
	for _, pod := range c.Pods {
		pods = append(pods, pod.Address.String())
	}
	for _, p := range c.Policies {
		policies = append(policies, p.Namespace+"/"+p.Name)
	}
	for got, want := range map[*[]string][]string{
		&pods: {"10.0.0.1", "10.0.0.2", "10.0.0.10"}, &policies: {"shop/a", "shop/b", "till/a"},
	} {
		if len(*got) != len(want) {
			t.Fatalf("got %v, want %v", *got, want)
		}
		for i := range want {
			if (*got)[i] != want[i] {
				t.Errorf("got %v, want %v", *got, want)
			}
		}
	}
	if ports := c.Pods[2].Ports; len(ports) != 3 || ports[1].Name != "metrics" || ports[2].Name != "sidecar" {
		t.Errorf("the ports of a pod are %v, want those of all containers that run beside each other", ports)
	}
	if c.Namespaces["shop"]["tier"] != "front" {
		t.Errorf("the namespaces are %v", c.Namespaces)
	}
}

// TestChangesAreNotCounted: changes that come while a filter is installed lead
// to one more, and none waits for that.
func TestChangesAreNotCounted(t *testing.T) {
	e := enforcing(t)
	handler := e.handler()
	handler.OnAdd(nil, false)
	handler.OnUpdate(nil, nil)
	handler.OnDelete(nil)
	<-e.changes
	select {
	case <-e.changes:
		t.Error("there is a second change")
	default:
	}
}
