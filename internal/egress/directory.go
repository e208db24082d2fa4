package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// byAddress is the index of pods and nodes by their addresses.
const byAddress = "address"

// unfinished selects the pods that have their addresses. A pod that has ended
// still shows its address, which another pod may have by then.
const unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// SuperCluster is the directory of the addresses of a super cluster's pods and
// nodes, out of a cache.
type SuperCluster struct {
	pods, nodes cache.SharedIndexInformer
}

// WatchSuperCluster makes a directory that follows the super cluster until ctx
// ends, and waits until it is complete.
func WatchSuperCluster(ctx context.Context, super kubernetes.Interface) (*SuperCluster, error) {
	ofPods := informers.NewSharedInformerFactoryWithOptions(super, 0, informers.WithTransform(reduce),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = unfinished }))
	ofNodes := informers.NewSharedInformerFactoryWithOptions(super, 0, informers.WithTransform(reduce))
	d := &SuperCluster{pods: ofPods.Core().V1().Pods().Informer(), nodes: ofNodes.Core().V1().Nodes().Informer()}
	for _, informer := range []cache.SharedIndexInformer{d.pods, d.nodes} {
		if err := informer.AddIndexers(cache.Indexers{byAddress: addressesOf}); err != nil {
			return nil, fmt.Errorf("index addresses: %w", err)
		}
	}
	ofPods.Start(ctx.Done())
	ofNodes.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), d.pods.HasSynced, d.nodes.HasSynced) {
		return nil, errors.Join(errors.New("list pods and nodes of the super cluster"), context.Cause(ctx))
	}
	return d, nil
}

// Holder returns the holder of an address.
func (d *SuperCluster) Holder(address netip.Addr) Holder {
	var h Holder
	nodes, _ := d.nodes.GetIndexer().ByIndex(byAddress, address.String()) // fails for an unknown index alone
	h.Node = len(nodes) > 0
	pods, _ := d.pods.GetIndexer().ByIndex(byAddress, address.String())
	for _, obj := range pods {
		pod := obj.(*corev1.Pod)
		h.Node = h.Node || pod.Spec.HostNetwork
		h.Pods = append(h.Pods, holdersOf(pod)...)
	}
	return h
}

// holdersOf returns the cluster keys of the tenant of a pod: of one that has a
// copy in the super cluster, and of one that is converted. A pod with two has an
// address of none.
func holdersOf(pod *corev1.Pod) []string {
	copied, isCopied := pod.Annotations[names.Cluster]
	converted, isConverted := pod.Labels[names.Converted]
	switch {
	case isCopied && isConverted:
		return []string{copied, converted}
	case isConverted:
		return []string{converted}
	}
	return []string{copied}
}

// reduce leaves of an object what the directory needs.
func reduce(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: reduceMeta(o.ObjectMeta),
			Spec:       corev1.PodSpec{HostNetwork: o.Spec.HostNetwork},
			Status:     corev1.PodStatus{PodIPs: o.Status.PodIPs},
		}, nil
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: reduceMeta(o.ObjectMeta), Status: corev1.NodeStatus{Addresses: o.Status.Addresses}}, nil
	default:
		return obj, nil
	}
}

func reduceMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	reduced := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	if key, ok := m.Annotations[names.Cluster]; ok {
		reduced.Annotations = map[string]string{names.Cluster: key}
	}
	if key, ok := m.Labels[names.Converted]; ok {
		reduced.Labels = map[string]string{names.Converted: key}
	}
	return reduced
}

// addressesOf returns the addresses of a pod or a node, in the form that netip
// gives them.
func addressesOf(obj any) ([]string, error) {
	var found []string
	add := func(text string) {
		if address, err := netip.ParseAddr(text); err == nil {
			found = append(found, address.Unmap().String())
		}
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		for _, ip := range o.Status.PodIPs {
			add(ip.IP)
		}
	case *corev1.Node:
		for _, address := range o.Status.Addresses {
			add(address.Address)
		}
	}
	return found, nil
}
