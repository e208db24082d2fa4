package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Indexes of the directory's caches.
const (
	byAddress  = "address"
	byService  = "service"
	byListener = "listener"
)

// unfinished selects the pods that have their addresses. A pod that has ended
// still shows its address, which another pod may have by then.
const unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// Directory is what the super cluster has of all tenants, reduced to what DNS
// needs. Names and addresses are those of the super cluster.
type Directory struct {
	namespaces cache.SharedIndexInformer
	// The copies of objects of tenants, and the objects of tenants that have none:
	// those of converted tenants.
	caches

	converted caches
}

// caches are those of one selector.
type caches struct{ services, slices, pods cache.SharedIndexInformer }

func (d *Directory) each(of func(caches) cache.SharedIndexInformer) []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{of(d.caches), of(d.converted)}
}

func servicesIn(c caches) cache.SharedIndexInformer { return c.services }
func slicesIn(c caches) cache.SharedIndexInformer   { return c.slices }
func podsIn(c caches) cache.SharedIndexInformer     { return c.pods }

// Labels by which the objects of tenants are selected. What the platform has in the
// namespaces of converted tenants has both.
const (
	ofCopies    = names.VCName
	ofConverted = names.Converted + ",!" + names.VCName
)

// NewDirectory returns a directory that is empty until it runs.
func NewDirectory(super kubernetes.Interface) (*Directory, error) {
	of := func(labels, fields string) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(super, 0, informers.WithTransform(reduce),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.LabelSelector, o.FieldSelector = labels, fields
			}))
	}
	d := &Directory{namespaces: of(ofCopies, "").Core().V1().Namespaces().Informer()}
	var err error
	for labels, made := range map[string]*caches{ofCopies: &d.caches, ofConverted: &d.converted} {
		all := of(labels, "")
		*made = caches{
			services: all.Core().V1().Services().Informer(), slices: all.Discovery().V1().EndpointSlices().Informer(),
			pods: of(labels, unfinished).Core().V1().Pods().Informer(),
		}
		err = errors.Join(err,
			made.services.AddIndexers(cache.Indexers{byAddress: addressesOf}),
			made.slices.AddIndexers(cache.Indexers{byAddress: addressesOf, byService: serviceOf, byListener: listenerOf}),
			made.pods.AddIndexers(cache.Indexers{byAddress: addressesOf}),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("index the super cluster: %w", err)
	}
	return d, nil
}

// Run follows the super cluster until ctx ends. It calls changed after each
// change of a listener or a namespace.
func (d *Directory) Run(ctx context.Context, changed func()) error {
	for _, informer := range []cache.SharedIndexInformer{d.namespaces, d.slices} {
		if _, err := informer.AddEventHandler(onChange(changed)); err != nil {
			return fmt.Errorf("follow the super cluster: %w", err)
		}
	}
	for _, informer := range d.all() {
		go informer.RunWithContext(ctx)
	}
	return nil
}

func (d *Directory) all() []cache.SharedIndexInformer {
	return slices.Concat([]cache.SharedIndexInformer{d.namespaces}, d.each(servicesIn), d.each(slicesIn), d.each(podsIn))
}

// HasSynced reports whether the directory is complete.
func (d *Directory) HasSynced() bool {
	return !slices.ContainsFunc(d.all(), func(i cache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// onChange calls changed for each change of a namespace, or of an EndpointSlice
// that is, or was, a listener.
func onChange(changed func()) cache.ResourceEventHandler {
	call := func(objects ...any) {
		if slices.ContainsFunc(objects, concernsListeners) {
			changed()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { call(obj) },
		UpdateFunc: func(was, now any) { call(was, now) },
		DeleteFunc: func(obj any) { call(obj) },
	}
}

func concernsListeners(obj any) bool {
	slice, ok := lastknown.Of[*endpointSlice](obj)
	return !ok || slice.listener != nil
}

// owner returns the cluster key of the tenant to which a namespace of the super
// cluster belongs, and the tenant's name of the namespace; empty if it belongs
// to no tenant, or is not known yet.
func (d *Directory) owner(superNamespace string) (key, tenants string) {
	obj, exists, _ := d.namespaces.GetStore().GetByKey(superNamespace) // a thread-safe store returns no error
	if !exists {
		return "", ""
	}
	ns := obj.(*namespace)
	return ns.key, ns.origin
}

// superNamespace returns the name in the super cluster of a tenant's namespace;
// empty if there is none.
func (d *Directory) superNamespace(key, tenants string) string {
	super := names.SuperNamespace(key, tenants)
	if owner, origin := d.owner(super); key == "" || owner != key || origin != tenants {
		return ""
	}
	return super
}

// service returns a Service of the super cluster; nil if there is none.
func (d *Directory) service(superNamespace, name string) *service {
	for _, services := range d.each(servicesIn) {
		if obj, exists, _ := services.GetStore().GetByKey(superNamespace + "/" + name); exists {
			return obj.(*service)
		}
	}
	return nil
}

// servicesAt returns the Services of all tenants with a cluster IP.
func (d *Directory) servicesAt(ip string) []*service {
	return find[*service](d.each(servicesIn), byAddress, ip)
}

// slicesOf returns the EndpointSlices of a Service.
func (d *Directory) slicesOf(superNamespace, service string) []*endpointSlice {
	return find[*endpointSlice](d.each(slicesIn), byService, superNamespace+"/"+service)
}

// slicesWith returns the EndpointSlices of all tenants with an address.
func (d *Directory) slicesWith(ip string) []*endpointSlice {
	return find[*endpointSlice](d.each(slicesIn), byAddress, ip)
}

// listenerSlices returns the EndpointSlices that lead to this process, which are the
// platform's.
func (d *Directory) listenerSlices() []*endpointSlice {
	return find[*endpointSlice]([]cache.SharedIndexInformer{d.slices}, byListener, byListener)
}

// find returns the objects with a value of an index.
func find[T any](in []cache.SharedIndexInformer, index, value string) []T {
	var found []T
	for _, informer := range in {
		objects, _ := informer.GetIndexer().ByIndex(index, value) // fails for an unknown index alone
		for _, object := range objects {
			found = append(found, object.(T))
		}
	}
	return found
}

// Holder says who has an address, as far as a tenant is concerned.
type Holder int

// The holders of an address.
const (
	// Unknown: no pod, or pods of several tenants. The kubelet tells the address
	// of a pod only after the pod has it.
	Unknown Holder = iota
	// Own: pods of the tenant.
	Own
	// Foreign: pods of others.
	Foreign
)

// Holder returns who has an address. Pods in the network of a node have the
// node's address, and share it.
func (d *Directory) Holder(address netip.Addr, key string) Holder {
	own, foreign := false, false
	for _, p := range find[*pod](d.each(podsIn), byAddress, address.String()) {
		owner, _ := d.owner(p.namespace)
		own = own || owner == key
		foreign = foreign || owner != key && !p.hostNetwork
	}
	switch {
	case own && !foreign:
		return Own
	case foreign && !own:
		return Foreign
	default:
		return Unknown
	}
}

// Network returns the network of the pods of a tenant that have an address; false
// if they are in several, as pods in the network of a node can be, or if there is
// none.
func (d *Directory) Network(address netip.Addr, key string) (network string, known bool) {
	for _, p := range find[*pod](d.each(podsIn), byAddress, address.String()) {
		if owner, _ := d.owner(p.namespace); owner != key {
			continue
		}
		if known && p.network != network {
			return "", false
		}
		network, known = p.network, true
	}
	return network, known
}

// addressesOf returns the addresses of an object, as netip writes them.
func addressesOf(obj any) ([]string, error) {
	var texts []string
	switch o := obj.(type) {
	case *service:
		texts = o.ClusterIPs
	case *endpointSlice:
		texts = o.IndexIP
	case *pod:
		texts = o.addresses
	}
	var found []string
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			found = append(found, address.Unmap().String())
		}
	}
	return found, nil
}

// serviceOf returns the Service of an EndpointSlice.
func serviceOf(obj any) ([]string, error) {
	slice := obj.(*endpointSlice)
	return []string{slice.Namespace + "/" + slice.service()}, nil
}

// listenerOf returns one value for all EndpointSlices that are listeners.
func listenerOf(obj any) ([]string, error) {
	if obj.(*endpointSlice).listener == nil {
		return nil, nil
	}
	return []string{byListener}, nil
}
