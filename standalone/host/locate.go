package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

const (
	// locateTimeout limits how long stores take to respond.
	locateTimeout = 5 * time.Second
	// locateRetry is when to look for data again.
	locateRetry = 5 * time.Second
)

// locate records where the data of a control plane is, of which the status does not
// say so, and reports whether that is known. The status is lost if the object is
// restored from a backup.
func (r *controlPlanes) locate(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster,
) (located bool, err error) {
	found := whereabouts{}
	hasRun, err := r.hasKeys(ctx, plane.Namespace)
	if err != nil {
		return false, err
	}
	if hasRun {
		var failure error
		if found, failure = r.search(ctx, plane); failure != nil {
			return false, r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
				report(&fresh.Status, vc.Generation, contract.ControlPlane{}, failure)
				return nil
			})
		}
	}
	var recorded *tenancyv1alpha1.HostedControlPlane
	err = r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
		if fresh.UID != plane.UID || fresh.Spec.Store != plane.Spec.Store || fresh.Status.Store != "" {
			return errOutdated
		}
		recordWhereabouts(fresh, found, metav1.Now())
		recorded = fresh
		return nil
	})
	if err != nil {
		return false, err
	}
	recorded.DeepCopyInto(plane)
	return true, nil
}

// recordWhereabouts writes where the data is into the status. An interrupted move is
// ended as one of another replica.
func recordWhereabouts(plane *tenancyv1alpha1.HostedControlPlane, found whereabouts, now metav1.Time) {
	status := &plane.Status
	status.Store = plane.Spec.Store
	if found.at != "" {
		status.Store = found.at
	}
	status.Attempt = max(status.Attempt, found.attempt)
	if found.interrupted {
		status.Move = &tenancyv1alpha1.HostedControlPlaneMove{To: plane.Spec.Store, StartTime: now}
	}
	for _, each := range found.unused {
		leave(status, each, now)
	}
}

// hasKeys reports whether a control plane has run before: the keys are written
// first, and deleted last.
func (r *controlPlanes) hasKeys(ctx context.Context, controlPlane string) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.live.Get(ctx, types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneKeys}, secret)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get the keys of control plane %s: %w", controlPlane, err)
	}
	return !apierrors.IsNotFound(err), nil
}

// search asks all stores for the data of a control plane. One that does not respond
// could have it, unless another one has data that is in use.
func (r *controlPlanes) search(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) (whereabouts, error) {
	all := &tenancyv1alpha1.ControlPlaneStoreList{}
	if err := r.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return whereabouts{}, fmt.Errorf("list ControlPlaneStores: %w", err)
	}
	stores := make([]string, 0, len(all.Items))
	for i := range all.Items {
		stores = append(stores, all.Items[i].Name)
	}
	states, unknown := r.statesIn(ctx, plane.Namespace, stores)
	found, err := deduce(states, plane.Spec.Store)
	switch {
	case err != nil:
		return found, contract.Failf(tenancyv1alpha1.ReasonStartFailed, "%v", err)
	case len(unknown) > 0 && (found.at == "" || found.interrupted):
		return found, contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable, "the status does not say where the data is, and it can be in "+
			"ControlPlaneStores that do not respond: %s; see their conditions", strings.Join(unknown, ", "))
	}
	return found, nil
}

// statesIn returns what stores have of a control plane, and the stores that have not
// responded.
func (r *controlPlanes) statesIn(ctx context.Context, controlPlane string, stores []string) (map[string]transfer.State, []string) {
	ctx, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	var (
		work    sync.WaitGroup
		mu      sync.Mutex
		states  = map[string]transfer.State{}
		unknown []string
	)
	for _, each := range stores {
		work.Go(func() {
			state, known := r.stateIn(ctx, controlPlane, each)
			mu.Lock()
			defer mu.Unlock()
			if known {
				states[each] = state
			} else {
				unknown = append(unknown, each)
			}
		})
	}
	work.Wait()
	return states, unknown
}

func (r *controlPlanes) stateIn(ctx context.Context, controlPlane, store string) (transfer.State, bool) {
	in, connected := r.stores.get(store)
	if !connected {
		return transfer.State{}, false
	}
	state, err := in.host.DataState(ctx, controlPlane)
	return state, err == nil
}

// correct records that a move was completed of which the status does not know: a
// backup can be older than the move. Writes to the new store were allowed then.
func (r *controlPlanes) correct(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) error {
	at, to := plane.DataStore(), plane.Status.Move.To
	states, _ := r.statesIn(ctx, plane.Namespace, []string{at, to})
	if here, there := states[at], states[to]; at == to || here.InUse() || !there.InUse() {
		return nil
	}
	err := r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
		if fresh.UID != plane.UID || fresh.Status.Store != at || fresh.Status.Move == nil || fresh.Status.Move.To != to {
			return errOutdated
		}
		leave(&fresh.Status, at, metav1.Now())
		fresh.Status.Store = to
		return nil
	})
	if err != nil {
		return err
	}
	return r.live.Get(ctx, client.ObjectKeyFromObject(plane), plane)
}
