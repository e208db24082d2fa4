package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const (
	// storeWorkers: a store that does not respond holds a worker for a while.
	storeWorkers = 8
	// storeTimeout limits a connection to a store.
	storeTimeout = time.Minute
	// checkInterval is the interval of checking the health and the credentials of
	// a store.
	checkInterval = 30 * time.Second
	checkTimeout  = 5 * time.Second
)

// storeController connects to ControlPlaneStores and reports their health.
type storeController struct {
	client.Client

	live      client.Reader
	namespace string
	stores    *stores
	// reports is whether this process writes the status of a store, as one of
	// several that are connected to it.
	reports func(types.NamespacedName) bool
	sweeps  sweeps
	log     logr.Logger
}

func (s *storeController) setUp(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("controlplanestore").
		For(&tenancyv1alpha1.ControlPlaneStore{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.TypedChannel(s.stores.lost, &handler.TypedEnqueueRequestForObject[*tenancyv1alpha1.ControlPlaneStore]{})).
		WithOptions(controllerOptions(storeWorkers, storeTimeout)).
		Complete(s)
}

// Reconcile connects to a store, or disconnects from one that was deleted.
func (s *storeController) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &tenancyv1alpha1.ControlPlaneStore{}
	switch err := s.Get(ctx, req.NamespacedName, object); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, s.stores.disconnect(req.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get ControlPlaneStore %s: %w", req.Name, err)
	}
	before := object.DeepCopy()
	found, failed := s.check(ctx, object)
	if failed == nil {
		s.updateOrphans(ctx, object)
	}
	if err := s.report(ctx, before, object, found); err != nil {
		return reconcile.Result{}, err
	}
	if failed != nil {
		return reconcile.Result{}, fmt.Errorf("ControlPlaneStore %s: %w", req.Name, failed)
	}
	return reconcile.Result{RequeueAfter: checkInterval}, nil
}

// health is the health of a store. It has no reason if nothing is known of it.
type health struct {
	reason, message string
	bytes           int64
}

// check connects to a store, if that is not done, and returns its health. An error
// is retried with backoff.
func (s *storeController) check(ctx context.Context, object *tenancyv1alpha1.ControlPlaneStore) (health, error) {
	credentials, err := s.readCredentials(ctx, object.Spec.CredentialsSecret)
	switch {
	case errors.Is(err, errUnknownCredentials): // says nothing about the store
		return health{}, err
	case err != nil:
		return health{reason: tenancyv1alpha1.ReasonCredentialsInvalid, message: err.Error()}, err
	}
	connected, err := s.stores.connect(object.Name, object.Spec.Endpoints, bytesOf(object), credentials)
	if err != nil {
		return health{reason: tenancyv1alpha1.ReasonStoreUnreachable, message: err.Error()}, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	state, err := connected.host.CheckStore(ctx)
	if err != nil {
		return health{reason: tenancyv1alpha1.ReasonStoreUnreachable, message: err.Error()}, err
	}
	return healthOf(state), nil
}

// healthOf returns the health of a store that responds.
func healthOf(state hosted.StoreState) health {
	problems := strings.Join(state.Problems, ", ")
	switch {
	case strings.Contains(problems, etcdserverpb.AlarmType_NOSPACE.String()):
		return health{tenancyv1alpha1.ReasonStoreFull, "etcd reports: " + problems, state.Bytes}
	case problems != "":
		return health{tenancyv1alpha1.ReasonStoreUnreachable, "etcd reports: " + problems, state.Bytes}
	}
	return health{tenancyv1alpha1.ReasonHealthy, "etcd responds", state.Bytes}
}

// bytesOf returns the quota of the etcd; 0 for the default of hosts.
func bytesOf(object *tenancyv1alpha1.ControlPlaneStore) int64 {
	if object.Spec.Capacity.Storage == nil {
		return 0
	}
	return object.Spec.Capacity.Storage.Value()
}

// updateOrphans looks for orphans in a store from time to time. A failure is
// repeated with the next check: nothing depends on them.
func (s *storeController) updateOrphans(ctx context.Context, object *tenancyv1alpha1.ControlPlaneStore) {
	in, connected := s.stores.get(object.Name)
	if !connected || !s.reports(client.ObjectKeyFromObject(object)) || !s.sweeps.due(object, time.Now()) {
		return
	}
	orphans, err := s.sweep(ctx, object, in)
	if err != nil {
		s.log.Error(err, "Failed to look for data that belongs to no HostedControlPlane", "store", object.Name)
		return
	}
	object.Status.Orphans = orphans
}

// report writes the status of a store, if it has changed.
func (s *storeController) report(ctx context.Context, before, object *tenancyv1alpha1.ControlPlaneStore, found health) error {
	if found.reason == "" || !s.reports(client.ObjectKeyFromObject(object)) {
		return nil
	}
	placed := &tenancyv1alpha1.HostedControlPlaneList{}
	if err := s.List(ctx, placed, client.MatchingFields{storeField: object.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HostedControlPlanes of store %s: %w", object.Name, err)
	}
	object.Status.ControlPlanes = int32(min(len(placed.Items), 1<<30))
	if found.bytes > 0 {
		object.Status.Bytes = found.bytes
	}
	setCondition(&object.Status.Conditions, object.Generation, tenancyv1alpha1.ConditionStoreHealthy,
		found.reason == tenancyv1alpha1.ReasonHealthy, found.reason, found.message)
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return nil
	}
	if err := s.Status().Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of ControlPlaneStore %s: %w", object.Name, err)
	}
	return nil
}
