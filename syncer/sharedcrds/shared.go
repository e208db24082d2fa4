package sharedcrds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
)

// retryAfter is how long a CRD of the super cluster that could not be read is
// not read again.
const retryAfter = 5 * time.Second

// Shared are the CRDs that the super cluster shares with its tenants.
type Shared struct {
	super    cluster.Cluster
	metadata cache.Cache
	interval time.Duration
	woken    chan struct{}

	mu sync.Mutex
	// known is closed when publications are known.
	known        chan struct{}
	publications map[string]*publication
	// syncers are those of the engaged tenants, by VirtualCluster.
	syncers map[client.ObjectKey]*Syncer
}

// New returns the CRDs that a super cluster shares. Tenants are reconciled at
// the interval, and after changes.
func New(super cluster.Cluster, interval time.Duration) (*Shared, error) {
	metadata, err := informer.NewCache(super, cache.Options{DefaultTransform: trim})
	if err != nil {
		return nil, fmt.Errorf("create the cache of CustomResourceDefinitions: %w", err)
	}
	return &Shared{
		super: super, metadata: metadata, interval: interval, woken: make(chan struct{}, 1), known: make(chan struct{}),
		publications: map[string]*publication{}, syncers: map[client.ObjectKey]*Syncer{},
	}, nil
}

// AddTo adds to a manager what follows the super cluster's CRDs.
func (s *Shared) AddTo(mgr manager.Manager) error {
	return errors.Join(mgr.Add(s.metadata), mgr.Add(s))
}

// definitionType is the type of CRDs, for objects with metadata only.
func definitionType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
}

// trim reduces the metadata of a CRD to what a publication depends on.
func trim(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	trimmed := metav1.ObjectMeta{
		Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if v, ok := m.Labels[names.CRDSharingPolicy]; ok {
		trimmed.Labels = map[string]string{names.CRDSharingPolicy: v}
	}
	if v, ok := m.Annotations[names.ApplicableRange]; ok {
		trimmed.Annotations = map[string]string{names.ApplicableRange: v}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: trimmed}, nil
}

// Start follows the CRDs of the super cluster, and the labels and annotations
// of VirtualClusters, until ctx ends.
func (s *Shared) Start(ctx context.Context) error {
	definitions, err := s.metadata.GetInformer(
		ctx, &metav1.PartialObjectMetadata{TypeMeta: definitionType()}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	if _, err := definitions.AddEventHandler(onChange(s.wake)); err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	if err := s.watchTenants(ctx); err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), definitions.HasSynced) {
		return nil
	}
	s.wake()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.woken:
		}
		if err := s.load(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Shared CustomResourceDefinitions cannot be read", "retryAfter", retryAfter)
			pause.For(ctx, retryAfter)
			s.wake()
		}
	}
}

// onChange returns a handler that calls f for each event.
func onChange(f func()) toolscache.ResourceEventHandler {
	return caches.Handler{
		Add:    func(client.Object, bool) { f() },
		Update: func(client.Object, client.Object) { f() },
		Remove: func(client.Object, bool) { f() },
	}
}

// wake causes another load.
func (s *Shared) wake() { signal(s.woken) }

// signal sends without waiting: the receiver has a signal then.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// watchTenants wakes the syncer of a tenant when its labels or annotations
// change.
func (s *Shared) watchTenants(ctx context.Context) error {
	tenants, err := s.super.GetCache().GetInformer(ctx, &tenancyv1alpha1.VirtualCluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch VirtualClusters: %w", err)
	}
	_, err = tenants.AddEventHandler(caches.Handler{Update: func(was, now client.Object) {
		if maps.Equal(was.GetLabels(), now.GetLabels()) && maps.Equal(was.GetAnnotations(), now.GetAnnotations()) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if syncer := s.syncers[client.ObjectKeyFromObject(now)]; syncer != nil {
			syncer.wake()
		}
	}})
	if err != nil {
		return fmt.Errorf("watch VirtualClusters: %w", err)
	}
	return nil
}

// Lacks reports whether the super cluster is known not to have a CRD. It sends no
// request.
func (s *Shared) Lacks(ctx context.Context, name string) bool {
	found := &metav1.PartialObjectMetadata{TypeMeta: definitionType()}
	definitions, err := s.metadata.GetInformer(ctx, found, cache.BlockUntilSynced(false))
	if err != nil || !definitions.HasSynced() {
		return false
	}
	return apierrors.IsNotFound(s.metadata.Get(ctx, client.ObjectKey{Name: name}, found))
}

// load reads the CRDs that are shared, and wakes all syncers if one has
// changed. A CRD whose range is invalid reaches the tenants that it is forced
// upon.
func (s *Shared) load(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{TypeMeta: definitionType()}
	if err := s.metadata.List(ctx, list); err != nil {
		return fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	was := s.all()
	now := map[string]*publication{}
	for i := range list.Items {
		p, err := newPublication(&list.Items[i])
		if p == nil {
			continue
		}
		if old := was[p.name]; old != nil && old.version == p.version {
			now[p.name] = old
			continue
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "A CustomResourceDefinition is shared with no tenant")
		}
		p.definition = &crd{}
		err = s.super.GetAPIReader().Get(ctx, client.ObjectKey{Name: p.name}, p.definition)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", p.name, err)
		}
		if err == nil && p.definition.UID == list.Items[i].UID {
			now[p.name] = p
		}
	}
	s.replace(now)
	return nil
}

// all returns the publications. They are shared, so no caller may change them.
func (s *Shared) all() map[string]*publication {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publications
}

// replace stores the publications, and wakes all syncers if they differ.
func (s *Shared) replace(publications map[string]*publication) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := false
	select {
	case <-s.known:
	default:
		close(s.known)
		first = true
	}
	if !first && maps.Equal(s.publications, publications) {
		return
	}
	s.publications = publications
	for _, syncer := range s.syncers {
		syncer.wake()
	}
}

// add registers the syncer of a tenant, until the returned function is called.
func (s *Shared) add(syncer *Syncer) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncers[syncer.virtualCluster] = syncer
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.syncers[syncer.virtualCluster] == syncer {
			delete(s.syncers, syncer.virtualCluster)
		}
	}
}
