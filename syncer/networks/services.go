package networks

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
)

// maxCreations is the maximum of objects that are created in one reconcile:
// a network that is created meanwhile waits for no more of them to be ready.
const maxCreations = 16

// services keeps the Services kubernetes-<network> and kube-dns-<network> of one
// tenant's networks, and the EndpointSlices of the former.
type services struct {
	cluster Cluster
	// first is the name of the default network, whose Services are kubernetes and
	// kube-dns themselves.
	first string
	// interval is the pause before the retry of a creation that the tenant's
	// apiserver has rejected.
	interval time.Duration
	// misplaced reports whether a Service has an address that its network should
	// not have, and can get another one.
	misplaced func(*corev1.Service) bool

	// synced reports whether the tenant's objects are known; nil before they are
	// watched.
	synced   []toolscache.InformerSynced
	refusals map[objectID]refusal
}

// refusal is a creation that the tenant's apiserver has rejected.
type refusal struct {
	generation int64 // of the network
	at         time.Time
	message    string
}

// watch wakes the syncer of networks for each change of a Service or
// EndpointSlice that concerns networks, as long as engaged, and waits until all
// are known.
func (s *services) watch(engaged, ctx context.Context, wake func()) error {
	if s.synced == nil {
		var all []toolscache.InformerSynced
		for _, kind := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
			informer, err := s.cluster.GetCache().GetInformer(engaged, kind, cache.BlockUntilSynced(false))
			if err != nil {
				return fmt.Errorf("watch the tenant's Services: %w", err)
			}
			registration, err := informer.AddEventHandler(wakeFor(wake))
			if err != nil {
				return fmt.Errorf("watch the tenant's Services: %w", err)
			}
			all = append(all, registration.HasSynced)
		}
		s.synced = all
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), s.synced...) {
		return fmt.Errorf("list the tenant's Services: %w", context.Cause(ctx))
	}
	return nil
}

// wakeFor returns a handler that calls wake for each change of what the Services
// of networks depend on.
func wakeFor(wake func()) caches.Handler {
	changed := func(obj client.Object) {
		if concernsNetworks(obj) {
			wake()
		}
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { changed(obj) },
		Update: func(_, now client.Object) { changed(now) },
		Remove: func(obj client.Object, _ bool) { changed(obj) },
	}
}

// sync ensures the Services of networks, and deletes those of networks that have
// ended. It sets the condition of each network in its decision, and reports
// whether some are left to create.
func (s *services) sync(ctx context.Context, networks []networkv1.Network, decisions map[string]decision) (more bool, err error) {
	found, err := s.read(ctx)
	if err != nil {
		return false, err
	}
	if s.refusals == nil {
		s.refusals = map[objectID]refusal{}
	}
	pass := &servicePass{services: s, found: found, kept: map[objectID]bool{}, left: maxCreations}
	for i := range networks {
		n := &networks[i]
		d, exists := decisions[n.Name]
		if !exists || !d.finalizer || n.Name == s.first {
			continue
		}
		if d.services, err = pass.ensure(ctx, n, d.usable && n.Status.Phase == networkv1.PhaseReady); err != nil {
			return false, err
		}
		decisions[n.Name] = d
	}
	maps.DeleteFunc(s.refusals, func(id objectID, _ refusal) bool { return !pass.kept[id] })
	return pass.left <= 0, pass.deleteOthers(ctx)
}

// read returns what the tenant has.
func (s *services) read(ctx context.Context) (*foundServices, error) {
	found := &foundServices{services: map[client.ObjectKey]*corev1.Service{}, slices: map[client.ObjectKey]*discoveryv1.EndpointSlice{}}
	for _, w := range wellKnown {
		all, endpoints := &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
		if err := s.cluster.GetCache().List(ctx, all, client.InNamespace(w.namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the tenant's Services: %w", err)
		}
		if err := s.cluster.GetCache().List(ctx, endpoints, client.InNamespace(w.namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the tenant's EndpointSlices: %w", err)
		}
		for i := range all.Items {
			found.services[client.ObjectKeyFromObject(&all.Items[i])] = &all.Items[i]
		}
		for i := range endpoints.Items {
			found.slices[client.ObjectKeyFromObject(&endpoints.Items[i])] = &endpoints.Items[i]
		}
	}
	return found, nil
}

// create creates an object of a network. A rejection by the tenant's apiserver is
// returned as a message, and remembered for a while.
func (s *services) create(ctx context.Context, n *networkv1.Network, obj client.Object) (message string, err error) {
	key := idOf(obj)
	if r, refused := s.refusals[key]; refused && r.generation == n.Generation && time.Since(r.at) < s.interval {
		return r.message, nil
	}
	delete(s.refusals, key)
	err = s.cluster.GetClient().Create(ctx, obj)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // the cache does not have it yet
		return "", nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsInternalError(err):
		message = told(err.Error())
		s.refusals[key] = refusal{generation: n.Generation, at: time.Now(), message: message}
		return message, nil
	}
	return "", fmt.Errorf("create %T %s of Network %s: %w", obj, key.key, n.Name, err)
}

// concernsNetworks reports whether the Services of networks depend on an object:
// one of theirs, one with a name of theirs, or what they are made of.
func concernsNetworks(obj client.Object) bool {
	if isPlatforms(obj) {
		return true
	}
	for _, w := range wellKnown {
		if obj.GetNamespace() == w.namespace && w.concerns(obj.GetName()) {
			return true
		}
	}
	return false
}

// isPlatforms reports whether the platform has made an object for a network.
func isPlatforms(obj client.Object) bool { return obj.GetAnnotations()[names.NetworkService] != "" }

// meta returns the metadata of an object of a network, which stands for a Service.
func (w wellKnownService) meta(network string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.namespace, Name: w.of(network),
		Labels:      map[string]string{networkv1.Label: network},
		Annotations: map[string]string{names.NetworkService: w.name},
	}
}
