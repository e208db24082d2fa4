package sharedcrds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

const (
	// breath is the minimum time between two reconciles of a tenant, which can
	// change its CRDs as often as it likes.
	breath = 200 * time.Millisecond
	// perCRD is how long the steps of one CRD may take in one reconcile.
	perCRD = 10 * time.Minute
	// maxUID is the maximum length of the UID of a tenant's CRD, which is recorded.
	maxUID = 128
	// maxSteps is the maximum number of steps of one CRD in one reconcile.
	maxSteps = 12
)

// Cluster is the control plane of a tenant.
type Cluster interface {
	// GetClient returns a client of the control plane, and GetCache its cache.
	GetClient() client.Client
	// GetCache is described at GetClient.
	GetCache() cache.Cache
	// Learn makes a kind known to the client.
	Learn(mapping *meta.RESTMapping)
	// Verify asks the apiserver whether it still serves the cluster that was
	// engaged.
	Verify(ctx context.Context) error
}

// Tenant is a tenant whose CRDs are reconciled.
type Tenant struct {
	translate.Tenant

	Cluster Cluster
	// Guard writes to the tenant's namespaces in the super cluster, and Secrets
	// is the kind that it writes.
	Guard   *guard.Guard
	Secrets *kinds.Kind
	// Report creates an event about one of the tenant's objects.
	Report func(ctx context.Context, obj client.Object, reason, message string) error
}

// Syncer gives one tenant the CRDs that are shared with it.
type Syncer struct {
	shared  *Shared
	cluster Cluster
	vault   *vault
	report  func(ctx context.Context, obj client.Object, reason, message string) error

	virtualCluster client.ObjectKey
	// others are the names of CRDs that are synced with their objects.
	others sets.Set[string]
	woken  chan struct{}

	// records are as they were read or written last; nil if they are not known.
	records records
	watched bool
	// versions are those of the tenant's CRDs. settled are the outcomes of CRDs of
	// which no step was left, which are observed again when something changes, and
	// at intervals.
	versions versions
	settled  map[string]settled
	// told are the messages of events by CRD.
	told map[string]string
}

// NewSyncer returns the syncer of a tenant.
func NewSyncer(shared *Shared, t Tenant) *Syncer {
	others := sets.New[string]()
	for _, r := range t.Sync.CustomResources {
		others.Insert(r.Resource + "." + r.Group)
	}
	return &Syncer{
		shared: shared, cluster: t.Cluster, report: t.Report,
		vault:          &vault{reader: shared.super.GetAPIReader(), guard: t.Guard, kind: t.Secrets, namespace: t.Key},
		virtualCluster: client.ObjectKey{Namespace: t.Namespace, Name: t.Name},
		others:         others, woken: make(chan struct{}, 1), told: map[string]string{}, settled: map[string]settled{},
	}
}

// wake causes another reconcile.
func (s *Syncer) wake() { signal(s.woken) }

// Run reconciles the shared CRDs of the tenant until ctx ends.
func (s *Syncer) Run(ctx context.Context) {
	select {
	case <-s.shared.known:
	case <-ctx.Done():
		return
	}
	defer s.shared.add(s)()
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7, Cap: s.shared.interval}
	delay := backoff.DelayFunc()
	for ctx.Err() == nil {
		again, err := s.reconcile(ctx)
		if err == nil {
			delay = backoff.DelayFunc()
		} else {
			s.records, again = nil, delay()
			clear(s.settled)
		}
		if again == 0 {
			again = s.shared.interval
		}
		if !pause.For(ctx, breath) {
			return
		}
		select {
		case <-ctx.Done():
		case <-s.woken:
		case <-time.After(again):
			clear(s.settled)
		}
	}
}

// reconcile reconciles all CRDs of the tenant, and returns when to do that
// again; zero if nothing is under way.
func (s *Syncer) reconcile(ctx context.Context) (time.Duration, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := s.shared.super.GetClient().Get(ctx, s.virtualCluster, vc); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	published, beyond := reaching(slices.Collect(maps.Values(s.shared.all())), vc.Labels)
	if s.records == nil {
		var err error
		if s.records, err = s.vault.records(ctx); err != nil {
			return 0, err
		}
	}
	all := sets.KeySet(published).Union(sets.KeySet(s.records)).Difference(s.others)
	var found outcomes
	var failed []error
	if all.Len() > 0 {
		policy, err := s.prepare(ctx)
		if err != nil {
			return 0, errors.Join(err, s.conclude(ctx, vc, outcomes{{message: err.Error(), reason: tenancyv1alpha1.ReasonRetrying}}))
		}
		for _, name := range sets.List(all) {
			o := s.one(ctx, &subject{name: name, published: published[name], tenant: vc, policy: policy})
			found, failed = append(found, o), append(failed, o.err)
		}
	}
	if beyond > 0 {
		found = append(found, outcome{
			reason:  tenancyv1alpha1.ReasonTooManyCRDs,
			message: fmt.Sprintf("%d more CRDs are published to the tenant than the %d that it gets", beyond, MaxCRDs),
		})
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return found.again(), errors.Join(append(failed, s.conclude(ctx, vc, found))...)
}

// prepare watches what the reconcile of the tenant depends on, and returns the
// tenant's policy.
func (s *Syncer) prepare(ctx context.Context) (Policy, error) {
	if err := s.watch(ctx); err != nil {
		return "", err
	}
	system := &corev1.Namespace{}
	if err := s.cluster.GetClient().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read the tenant's policy: %w", err)
	}
	return Policy(system.Annotations[names.CRDPolicy]), nil
}

// watch watches the tenant's copies and its policy, once.
func (s *Syncer) watch(ctx context.Context) error {
	if s.watched {
		return nil
	}
	definitions, err := s.cluster.GetCache().GetInformer(
		ctx, &metav1.PartialObjectMetadata{TypeMeta: definitionType()}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the tenant's CustomResourceDefinitions: %w", err)
	}
	namespaces, err := s.cluster.GetCache().GetInformer(ctx, &corev1.Namespace{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the tenant's policy: %w", err)
	}
	_, err = definitions.AddEventHandler(s.versions.handler(s.wake))
	if err != nil {
		return fmt.Errorf("watch the tenant's CustomResourceDefinitions: %w", err)
	}
	_, err = namespaces.AddEventHandler(caches.Handler{Update: func(was, now client.Object) {
		if now.GetName() == metav1.NamespaceSystem && was.GetAnnotations()[names.CRDPolicy] != now.GetAnnotations()[names.CRDPolicy] {
			s.wake()
		}
	}})
	if err != nil {
		return fmt.Errorf("watch the tenant's policy: %w", err)
	}
	s.watched = true
	return nil
}

// subject is one CRD of one tenant in a reconcile.
type subject struct {
	name      string
	published *publication // nil if the CRD is not published to the tenant
	tenant    *tenancyv1alpha1.VirtualCluster
	policy    Policy
	// desired is the spec of the copy; nil if none is published. own is that of
	// the tenant's own CRD if it was kept aside.
	desired, own *spec
}

// one executes the steps of one CRD, if something has changed since none was
// left.
func (s *Syncer) one(ctx context.Context, of *subject) outcome {
	if last, ok := s.settled[of.name]; ok && last.basis == of.basis(s.versions.of(of.name)) {
		return last.outcome
	}
	delete(s.settled, of.name)
	return s.steps(ctx, of)
}

// steps executes the steps of one CRD.
func (s *Syncer) steps(ctx context.Context, of *subject) outcome {
	ctx, cancel := context.WithTimeout(ctx, perCRD)
	defer cancel()
	var last step
	for range maxSteps {
		o, err := s.observe(ctx, of)
		if err != nil {
			return of.outcome(err)
		}
		now := next(o)
		switch {
		case now == nothing, now == last && (now == repair || now == unserve):
			last := of.outcome(s.stays(ctx, of, o, now))
			if last.err == nil && last.again == 0 {
				s.settled[of.name] = settled{of.basis(versionOf(o.found)), last}
			}
			return last
		case now == await:
			return outcome{again: soon, reason: tenancyv1alpha1.ReasonRetrying, message: of.name + " is being changed"}
		}
		if err := s.act(ctx, of, o, now); err != nil {
			return of.outcome(s.tell(ctx, of, o, err))
		}
		last = now
	}
	return of.outcome(errors.New("it changes all the time"))
}

// observe reads what the next step depends on.
func (s *Syncer) observe(ctx context.Context, of *subject) (observation, error) {
	o := observation{record: s.records[of.name]}
	found := &crd{}
	err := s.cluster.GetClient().Get(ctx, client.ObjectKey{Name: of.name}, found)
	if client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("read CustomResourceDefinition %s: %w", of.name, err)
	}
	var stored []string
	if err == nil {
		o.found, stored = found, found.Status.StoredVersions
		if len(found.UID) > maxUID {
			return o, fmt.Errorf("read CustomResourceDefinition %s: its UID has more than %d bytes", of.name, maxUID)
		}
	}
	local := o.record.hasOwn() || o.record == nil && o.found != nil
	o.answer, of.desired = Lookup(System{}, of.policy, local), nil
	if of.published != nil {
		system := of.published.system(of.tenant.Labels)
		o.answer, o.forced = Lookup(system, of.policy, local), system.Forced
		of.desired = keepStored(copySpec(&of.published.definition.Spec), stored)
	}
	o.purged = o.found != nil && slices.Contains(strings.Split(of.tenant.Annotations[names.PurgeCRDs], ","), of.name+"/"+string(o.found.UID))
	if o.found == nil || !o.record.hasOwn() || o.found.UID != o.record.UID {
		return o, nil
	}
	return o, s.observeOwn(ctx, of, &o)
}

// observeOwn reads what the next step for the tenant's own CRD depends on.
func (s *Syncer) observeOwn(ctx context.Context, of *subject, o *observation) error {
	stored, storage := o.found.Status.StoredVersions, storageOf(&o.found.Spec)
	if o.record.Phase != keeping {
		var err error
		if of.own, err = s.vault.kept(ctx, of.name); err != nil {
			return err
		}
		storage = storageOf(of.own)
		o.asOwn = equal(&o.found.Spec, of.own)
		o.trimmed = len(without(stored, versionNames(of.own.Versions))) == 0
	}
	if of.published != nil && len(storage) == 1 {
		of.desired = replacementSpec(&of.published.definition.Spec, storage[0], stored)
		o.asCopied = equal(&o.found.Spec, of.desired)
	}
	return nil
}
