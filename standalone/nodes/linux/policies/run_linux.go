package policies

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Options configures the enforcement on a node.
type Options struct {
	// Cluster connects to the cluster whose policies are enforced.
	Cluster *rest.Config
	// Runtime is the endpoint of the node's container runtime.
	Runtime string
	// Namespace is the path of the network namespace whose connections are
	// filtered; empty for that of the process.
	Namespace string
	Log       logr.Logger
}

// enforcer keeps the kernel's filter up to date.
type enforcer struct {
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	policies   networkinglisters.NetworkPolicyLister
	sandboxes  *sandboxes
	// namespace is the path of the network namespace to filter; empty for that of
	// the process.
	namespace string
	// changes holds at most one element, which means that objects have changed.
	changes chan struct{}
}

// Run enforces the NetworkPolicies of a cluster on this node until ctx ends.
// The last filter stays in the kernel.
func Run(ctx context.Context, opts Options) error {
	client, err := kubernetes.NewForConfig(opts.Cluster)
	if err != nil {
		return fmt.Errorf("create a client for network policies: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(reduce))
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	policies := factory.Networking().V1().NetworkPolicies()
	e := &enforcer{
		pods: pods.Lister(), namespaces: namespaces.Lister(), policies: policies.Lister(),
		namespace: opts.Namespace, changes: make(chan struct{}, 1),
	}
	e.sandboxes = &sandboxes{changed: e.changed, of: map[types.UID]sandbox{}}
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), namespaces.Informer(), policies.Informer()} {
		if _, err := informer.AddEventHandler(e.handler()); err != nil {
			return err
		}
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).Err; err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.sandboxes.follow(ctx, opts.Runtime, opts.Log) })
	group.Go(func() error { return e.enforce(ctx, opts.Log) })
	return group.Wait()
}

func (e *enforcer) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.changed() },
		UpdateFunc: func(_, _ any) { e.changed() },
		DeleteFunc: func(any) { e.changed() },
	}
}

func (e *enforcer) changed() {
	select {
	case e.changes <- struct{}{}:
	default:
	}
}

// enforce installs each filter that differs from the last one.
func (e *enforcer) enforce(ctx context.Context, log logr.Logger) error {
	installed := Filter{}
	for first := true; ; first = false {
		cluster, err := e.cluster()
		if err != nil {
			return err
		}
		filter, err := NewFilter(cluster)
		if err != nil {
			return err
		}
		if first || !reflect.DeepEqual(filter, installed) {
			if err := install(filter, e.namespace); err != nil {
				return err
			}
			installed = filter
			log.V(1).Info("installed", "isolated", len(filter.Ingress.Isolated)+len(filter.Egress.Isolated))
		}
		select {
		case <-e.changes:
		case <-ctx.Done():
			return nil
		}
	}
}

// cluster returns the current objects.
func (e *enforcer) cluster() (Cluster, error) {
	c := Cluster{Namespaces: map[string]labels.Set{}}
	namespaces, err := e.namespaces.List(labels.Everything())
	if err != nil {
		return c, err
	}
	for _, ns := range namespaces {
		c.Namespaces[ns.Name] = ns.Labels
	}
	if c.Policies, err = e.policies.List(labels.Everything()); err != nil {
		return c, err
	}
	// Caches are unordered, and equal filters must compare as equal.
	slices.SortFunc(c.Policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	pods, err := e.pods.List(labels.Everything())
	for _, pod := range pods {
		if address := e.address(pod); address.IsValid() {
			c.Pods = append(c.Pods, Pod{Namespace: pod.Namespace, Labels: pod.Labels, Address: address, Ports: portsOf(pod)})
		}
	}
	slices.SortFunc(c.Pods, func(a, b Pod) int { return a.Address.Compare(b.Address) })
	return c, err
}

// address returns the address of a pod in the pod network, if it has one.
func (e *enforcer) address(pod *corev1.Pod) netip.Addr {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return netip.Addr{}
	}
	if known := e.sandboxes.address(pod.UID); known.IsValid() {
		return known
	}
	said, _ := netip.ParseAddr(pod.Status.PodIP) // empty until its sandbox runs
	return said
}

// portsOf returns the ports of the containers that run beside each other:
// sidecars are among the init containers.
func portsOf(pod *corev1.Pod) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		all = append(all, pod.Spec.Containers[i].Ports...)
	}
	for i := range pod.Spec.InitContainers {
		if restart := pod.Spec.InitContainers[i].RestartPolicy; restart != nil && *restart == corev1.ContainerRestartPolicyAlways {
			all = append(all, pod.Spec.InitContainers[i].Ports...)
		}
	}
	return all
}
