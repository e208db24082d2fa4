package networks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
)

const (
	// breath is the minimum time between two reconciles of a tenant, which can
	// change its networks as often as it likes.
	breath = 100 * time.Millisecond
	// soon is when networks are reconciled again that wait for their pods.
	soon = time.Second
	// timeout limits a reconcile, and serviceTimeout the part of it for Services:
	// networks are ready without them.
	timeout        = time.Minute
	serviceTimeout = 10 * time.Second
)

// Cluster is the control plane of a tenant.
type Cluster interface {
	// GetClient returns a client of the control plane, and GetCache its cache.
	GetClient() client.Client
	// GetCache is described at GetClient.
	GetCache() cache.Cache
	// GetConfig returns the configuration of the connection, and GetHTTPClient the
	// client of all requests.
	GetConfig() *rest.Config
	// GetHTTPClient is described at GetConfig.
	GetHTTPClient() *http.Client
	// Learn makes a kind known to the client.
	Learn(mapping *meta.RESTMapping)
	// Problem reports to an admin what prevents the sync of something; an empty
	// message if nothing does any more.
	Problem(about, message string)
}

// Tenant is the tenant whose networks are synced.
type Tenant struct {
	plugins.Tenant

	Cluster Cluster
	// ServiceRanges are the ranges in which the tenant's apiserver allocates Service
	// addresses by network; none if it does not.
	ServiceRanges []netip.Prefix
	// Pods returns how many pods use each network in the super cluster.
	Pods func(ctx context.Context) (map[string]int, error)
	// Wake reconciles the tenant's objects that belong to a network.
	Wake func(network string)
	// Vault keeps what was handed to providers.
	Vault *Vault
	// Review reconciles what keeps networks apart, after these have changed.
	Review func(networks []string)
	// Release deletes what keeps a network apart. No pod is in the network.
	Release func(ctx context.Context, network string) error
}

// Syncer gives one tenant the API of networks, and keeps the table of them.
type Syncer struct {
	tenant    Tenant
	template  *Template
	table     *Table
	interval  time.Duration
	installer installer
	// provisions are the networks at their providers.
	provisions *provisions
	// ranges are the ranges of Service addresses of networks.
	ranges *ranges
	// services are the Services of networks.
	services *services
	// installed is when the API was checked last; zero if it has to be checked.
	// recalled is set while the API is being deleted.
	installed time.Time
	recalled  bool
	// synced reports whether all networks are known; nil before they are watched.
	synced func() bool
	woken  chan struct{}
}

// NewSyncer returns the syncer of a tenant's networks, which checks the API at an
// interval.
func NewSyncer(template *Template, providers *Providers, table *Table, interval time.Duration, t Tenant) *Syncer {
	s := &Syncer{
		tenant: t, template: template, table: table, interval: interval,
		installer: installer{cluster: t.Cluster}, woken: make(chan struct{}, 1),
	}
	s.provisions = &provisions{
		providers: providers, vault: t.Vault, tenant: t.Tenant, interval: interval, wake: s.wake, calls: map[string]*call{},
	}
	s.ranges = &ranges{cluster: t.Cluster, within: t.ServiceRanges, first: template.name}
	s.services = &services{cluster: t.Cluster, first: template.name, interval: interval, misplaced: s.ranges.misplaced}
	return s
}

// wake causes another reconcile.
func (s *Syncer) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it is under way
	}
}

// Run syncs the networks of the tenant until ctx ends.
func (s *Syncer) Run(ctx context.Context) {
	s.installer.learn()
	defer s.provisions.providers.serve(s.tenant.Key, s.provisions)()
	backoff := wait.Backoff{Duration: breath, Factor: 2, Jitter: 0.1, Steps: 10, Cap: s.interval}
	delay := backoff.DelayFunc()
	for ctx.Err() == nil {
		again, err := s.reconcile(ctx)
		message := ""
		if err == nil {
			delay = backoff.DelayFunc()
		} else {
			again, message = delay(), err.Error()
		}
		if ctx.Err() != nil {
			return
		}
		s.tenant.Cluster.Problem("networks", message)
		if !pause.For(ctx, breath) {
			return
		}
		select {
		case <-ctx.Done():
		case <-s.woken:
		case <-time.After(again):
		}
	}
}

// reconcile ensures the API and reports the state of all networks. It returns
// when to do that again.
func (s *Syncer) reconcile(engaged context.Context) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(engaged, timeout)
	defer cancel()
	defer func() {
		if err != nil {
			s.installed = time.Time{}
		}
	}()
	if time.Since(s.installed) >= s.interval {
		err = s.install(ctx)
	}
	if !s.installer.served {
		return 0, err // a watch would fail, with a long backoff
	}
	networks, failure := s.list(engaged, ctx)
	if failure != nil {
		return 0, errors.Join(err, failure)
	}
	if s.recalled = false; slices.ContainsFunc(networks, isDeleted) {
		// Either this network is being deleted, or the API with all networks.
		s.recalled, failure = s.installer.definition(ctx)
	}
	failed := []error{err, failure}
	if !s.recalled && !slices.ContainsFunc(networks, func(n networkv1.Network) bool { return n.Name == s.template.name }) {
		failed = append(failed, s.createDefault(ctx))
	}
	if changed, differ := s.table.specs.set(networks); differ {
		s.tenant.Review(changed)
	}
	byRange, failure := s.ranges.sync(ctx, networks)
	if failure != nil {
		return 0, failure
	}
	decisions, again, failure := s.provide(engaged, ctx, networks, byRange)
	if failure != nil {
		return 0, failure
	}
	if len(byRange) > 0 {
		again = min(again, recount)
	}
	more, failure := s.ensureServices(engaged, ctx, networks, decisions)
	if more {
		again = 0
	}
	failed = append(failed, failure, s.report(ctx, networks, decisions, failure == nil))
	return again, errors.Join(failed...)
}

// report writes the finalizers and the status of networks, and wakes what waits
// for them. A network keeps its finalizer while its Services may be left.
func (s *Syncer) report(ctx context.Context, networks []networkv1.Network, decisions map[string]decision, served bool) error {
	var failed []error
	for i := range networks {
		n := &networks[i]
		d := decisions[n.Name]
		if !served && !d.finalizer {
			continue
		}
		if err := s.setFinalizer(ctx, n, d.finalizer); err != nil {
			d.usable = false
			decisions[n.Name] = d
			failed = append(failed, err)
		}
	}
	for _, name := range s.table.set(decisions) {
		s.tenant.Wake(name)
	}
	for i := range networks {
		if d := decisions[networks[i].Name]; !d.undecided {
			failed = append(failed, s.setStatus(ctx, &networks[i], d))
		}
	}
	return errors.Join(failed...)
}

// install ensures the API and its policy. Without the policy, the tenant can
// mislead itself about its networks, and no one else: so networks work without.
func (s *Syncer) install(ctx context.Context) error {
	s.installed = time.Now()
	_, err := s.installer.definition(ctx)
	return errors.Join(err, s.installer.policy(ctx))
}

// isDeleted reports whether a network has been deleted.
func isDeleted(n networkv1.Network) bool { return n.DeletionTimestamp != nil }

// list returns the networks of the tenant by age, once all are known. They are
// watched as long as engaged.
func (s *Syncer) list(engaged, ctx context.Context) ([]networkv1.Network, error) {
	if s.synced == nil {
		informer, err := s.tenant.Cluster.GetCache().GetInformer(engaged, &networkv1.Network{}, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the tenant's networks: %w", err)
		}
		registration, err := informer.AddEventHandler(caches.Handler{
			Add:    func(client.Object, bool) { s.wake() },
			Update: func(client.Object, client.Object) { s.wake() },
			Remove: func(client.Object, bool) { s.wake() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch the tenant's networks: %w", err)
		}
		s.synced = registration.HasSynced
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), s.synced) {
		return nil, errors.New("the tenant's networks cannot be listed yet")
	}
	list := &networkv1.NetworkList{}
	if err := s.tenant.Cluster.GetCache().List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the tenant's networks: %w", err)
	}
	byAge(list.Items, s.template.name)
	return list.Items, nil
}

// createDefault creates the default network.
func (s *Syncer) createDefault(ctx context.Context) error {
	n, err := s.template.fill(s.tenant.Key)
	if err != nil {
		return err
	}
	if err := s.tenant.Cluster.GetClient().Create(ctx, n); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Network %s: %w", n.Name, err)
	}
	return nil
}

// provide asks the providers of networks, as long as engaged, and returns the
// state that each network should have, and when to do that again.
func (s *Syncer) provide(
	engaged, ctx context.Context, networks []networkv1.Network, byRange map[string]ranged,
) (map[string]decision, time.Duration, error) {
	if err := s.provisions.load(ctx); err != nil {
		return nil, 0, err
	}
	usable := networks[:min(len(networks), maxNetworks)]
	if err := s.provisions.handOver(ctx, usable); err != nil {
		return nil, 0, err
	}
	leaving, again := s.leaving(networks), s.interval
	var pods map[string]int
	if len(leaving) > 0 || slices.ContainsFunc(networks, isDeleted) {
		again = soon
		var err error
		if pods, err = s.tenant.Pods(ctx); err != nil {
			return nil, 0, fmt.Errorf("count the pods of networks: %w", err)
		}
	}
	for i := range usable {
		if !isDeleted(usable[i]) {
			s.provisions.ensure(engaged, &usable[i])
		}
	}
	for _, name := range leaving {
		if pods[name] == 0 && s.table.released(name) {
			s.provisions.remove(engaged, name)
		}
	}
	s.provisions.await(ctx)
	exists := func(name string) bool {
		return slices.ContainsFunc(networks, func(n networkv1.Network) bool { return n.Name == name })
	}
	if err := s.provisions.forget(ctx, exists); err != nil {
		return nil, 0, err
	}
	return s.decide(networks, pods, byRange), s.provisions.again(again), nil
}

// ensureServices ensures the Services of networks, which are watched as long as
// engaged, and reports whether some are left to create.
func (s *Syncer) ensureServices(
	engaged, ctx context.Context, networks []networkv1.Network, decisions map[string]decision,
) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	if err := s.services.watch(engaged, ctx, s.wake); err != nil {
		return false, err
	}
	return s.services.sync(ctx, networks, decisions)
}

// leaving returns the names of the networks that their providers have to delete
// when they have no pods.
func (s *Syncer) leaving(networks []networkv1.Network) []string {
	stays := map[string]bool{}
	for i := range networks {
		n := &networks[i]
		stays[n.Name] = !isDeleted(*n) && s.provisions.about(n).handed
	}
	var names []string
	for name := range s.provisions.records {
		if !stays[name] {
			names = append(names, name)
		}
	}
	return names
}

// decide returns the state that each network should have, by how many pods use
// it, and by what is known of its ranges.
func (s *Syncer) decide(networks []networkv1.Network, pods map[string]int, byRange map[string]ranged) map[string]decision {
	decisions := make(map[string]decision, len(networks))
	for i := range networks {
		n := &networks[i]
		d := decide(n, facts{
			beyond: i >= maxNetworks, recalled: s.recalled, pods: pods[n.Name], released: s.table.released(n.Name),
			provided: s.provisions.about(n), ranged: byRange[n.Name],
		})
		d.ranges = byRange[n.Name].condition
		d.record = s.provisions.forPods(n.Name)
		decisions[n.Name] = d
	}
	return decisions
}

// setFinalizer adds the finalizer to a network, or removes it. A network that is
// being deleted gets none.
func (s *Syncer) setFinalizer(ctx context.Context, n *networkv1.Network, wanted bool) error {
	if hasFinalizer(n) == wanted || wanted && n.DeletionTimestamp != nil {
		return nil
	}
	was := n.DeepCopy()
	if wanted {
		n.Finalizers = append(n.Finalizers, networkv1.Finalizer)
	} else {
		if err := s.release(ctx, n); err != nil {
			return fmt.Errorf("delete the policies of Network %s: %w", n.Name, err)
		}
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == networkv1.Finalizer })
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := s.tenant.Cluster.GetClient().Patch(ctx, n, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the finalizers of Network %s: %w", n.Name, err)
	}
	return nil
}

// setStatus writes the status of a network if it differs.
func (s *Syncer) setStatus(ctx context.Context, n *networkv1.Network, d decision) error {
	if n.DeletionTimestamp != nil && !hasFinalizer(n) {
		return nil // which it is the last write for
	}
	status := d.status(n)
	if equality.Semantic.DeepEqual(n.Status, status) {
		return nil
	}
	was := n.DeepCopy()
	n.Status = status
	if err := s.tenant.Cluster.GetClient().Status().Patch(ctx, n, client.MergeFrom(was)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Network %s: %w", n.Name, err)
	}
	return nil
}
