// Package hosted is the provisioner of control planes that vc-host runs. For each
// it makes a HostedControlPlane in the root namespace, whose status says where
// the control plane stands.
package hosted

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/rolebindings"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// fieldOwner owns what the manager applies.
const fieldOwner = client.FieldOwner("vc-manager")

// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=hostedcontrolplanes,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=controlplanestores,verbs=get;list;watch

// Provisioner makes and follows HostedControlPlanes.
type Provisioner struct {
	client   client.Client // reads HostedControlPlanes and stores from a cache
	live     client.Reader
	bindings rolebindings.Keeper
	cache    cache.Cache
	host     types.NamespacedName
	placed   placements
}

var (
	_ provisioner.Provisioner = (*Provisioner)(nil)
	_ provisioner.Watcher     = (*Provisioner)(nil)
)

// Registration offers Hosted where there is a vc-host, whose service account is
// the value of a flag.
func Registration() provisioner.Registration {
	var host types.NamespacedName
	const flag = "host-service-account"
	return provisioner.Registration{
		Name:    tenancyv1alpha1.ProvisionerHosted,
		Summary: "an unmodified kube-apiserver and its controllers, which vc-host runs; with --" + flag,
		AddFlags: func(flags *pflag.FlagSet) {
			component.NameVar(flags, &host, flag,
				"service account of vc-host as NAMESPACE/NAME, which runs the control planes of provisioner Hosted; empty: there is no vc-host")
		},
		New: func(mgr manager.Manager) (provisioner.Provisioner, error) {
			if host.Name == "" {
				return nil, fmt.Errorf("%w: --%s is not set", provisioner.ErrDisabled, flag)
			}
			return New(mgr, host), nil
		},
	}
}

// New makes a Provisioner for a manager. The service account host is that of
// vc-host.
func New(mgr manager.Manager, host types.NamespacedName) *Provisioner {
	bindings := rolebindings.Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: string(fieldOwner)}
	return &Provisioner{client: mgr.GetClient(), live: mgr.GetAPIReader(), bindings: bindings, cache: mgr.GetCache(), host: host}
}

// Capabilities returns that a control plane uses the Service addresses that it
// is allotted, and reaches pods and vn-agent.
func (*Provisioner) Capabilities() provisioner.Capabilities {
	return provisioner.Capabilities{ServiceCIDR: true, SecondServiceCIDR: true, Network: true}
}

// Sources request reconciles of the VirtualClusters of HostedControlPlanes, and
// of those that wait for a store.
func (p *Provisioner) Sources() []source.Source {
	return []source.Source{
		source.Kind(p.cache, &tenancyv1alpha1.HostedControlPlane{}, handler.TypedEnqueueRequestsFromMapFunc(ownerOf)),
		source.Kind(p.cache, &tenancyv1alpha1.ControlPlaneStore{}, handler.TypedEnqueueRequestsFromMapFunc(p.waitingFor)),
	}
}

// waitingFor returns the VirtualClusters that wait for a store, if control planes
// can be placed in this one.
func (p *Provisioner) waitingFor(_ context.Context, store *tenancyv1alpha1.ControlPlaneStore) []reconcile.Request {
	if obstacle(store, 0) != "" {
		return nil
	}
	return p.placed.requests()
}

// ownerOf leads from a HostedControlPlane to its VirtualCluster.
func ownerOf(_ context.Context, plane *tenancyv1alpha1.HostedControlPlane) []reconcile.Request {
	of := plane.Spec.VirtualCluster
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: of.Namespace, Name: of.Name}}}
}

// Ensure makes the HostedControlPlane if there is none, and says what vc-host
// reports of it.
func (p *Provisioner) Ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	plane, err := p.find(ctx, p.client, vc)
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	if err := p.ensureKeys(ctx, vc); err != nil {
		return provisioner.ControlPlane{}, err
	}
	if plane == nil {
		return p.create(ctx, vc)
	}
	move, err := p.move(ctx, vc, plane)
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	// One that was deleted by hand runs until its VirtualCluster is deleted.
	state, err := reported(&plane.Status)
	state.Move = move
	if err != nil || !state.Ready {
		return state, err
	}
	return p.addClients(ctx, vc, state)
}

// Delete deletes the HostedControlPlane, which vc-host lets go when its data is
// deleted.
func (p *Provisioner) Delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	plane, err := p.find(ctx, p.live, vc)
	switch {
	case provisioner.AsFailure(err) != nil, err == nil && plane == nil:
		p.placed.forget(vc.UID)
		return true, nil //nolint:nilerr // nothing was made where one of another VirtualCluster is
	case err != nil:
		return false, err
	}
	if !plane.DeletionTimestamp.IsZero() {
		return false, undeletable(&plane.Status)
	}
	err = p.client.Delete(ctx, plane, client.Preconditions{UID: &plane.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete HostedControlPlane %s: %w", client.ObjectKeyFromObject(plane), err)
	}
	return false, nil
}

// find gets the HostedControlPlane of a VirtualCluster: nil if there is none, a
// Failure if the one there belongs to another.
func (p *Provisioner) find(
	ctx context.Context, reader client.Reader, vc *tenancyv1alpha1.VirtualCluster,
) (*tenancyv1alpha1.HostedControlPlane, error) {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: tenancyv1alpha1.HostedControlPlaneName}
	plane := &tenancyv1alpha1.HostedControlPlane{}
	err := reader.Get(ctx, key, plane)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get HostedControlPlane %s: %w", key, err)
	}
	if plane.Spec.VirtualCluster != reference(vc) {
		return nil, provisioner.Failf(tenancyv1alpha1.ReasonNamespaceConflict,
			"HostedControlPlane %s exists and does not belong to this VirtualCluster (its UID is %q): "+
				"delete the HostedControlPlane, with the data of that control plane, or create the VirtualCluster under another name",
			key, plane.Spec.VirtualCluster.UID)
	}
	return plane, nil
}

// create makes the HostedControlPlane, in a store that has room.
func (p *Provisioner) create(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	store, waiting, err := p.place(ctx, vc)
	if err != nil || waiting != "" {
		return provisioner.ControlPlane{Message: waiting}, err
	}
	err = p.client.Create(ctx, &tenancyv1alpha1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   vc.Status.ClusterNamespace,
			Name:        tenancyv1alpha1.HostedControlPlaneName,
			Labels:      names.OwnerLabels(vc),
			Annotations: names.OwnerAnnotations(vc),
			Finalizers:  []string{tenancyv1alpha1.HostedControlPlaneFinalizer},
		},
		Spec: tenancyv1alpha1.HostedControlPlaneSpec{VirtualCluster: reference(vc), Store: store},
	}, fieldOwner)
	if err != nil {
		p.placed.forget(vc.UID)
	}
	if apierrors.IsAlreadyExists(err) {
		_, err = p.find(ctx, p.live, vc)
		return provisioner.ControlPlane{Message: awaited}, err
	}
	if err != nil {
		return provisioner.ControlPlane{}, fmt.Errorf("create HostedControlPlane in namespace %s: %w", vc.Status.ClusterNamespace, err)
	}
	return provisioner.ControlPlane{Message: awaited}, nil
}

// place chooses a store for a new control plane, or says what is waited for. It
// remembers either.
func (p *Provisioner) place(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (store, waiting string, err error) {
	p.placed.Lock()
	defer p.placed.Unlock()
	stores, placed, err := p.lockedStores(ctx)
	if err != nil {
		return "", "", err
	}
	if want := storeOf(vc); want != "" {
		stores = slices.DeleteFunc(stores, func(s tenancyv1alpha1.ControlPlaneStore) bool { return s.Name != want })
		if len(stores) == 0 {
			err = provisioner.Failf(tenancyv1alpha1.ReasonNoStore, "ControlPlaneStore %s of spec.controlPlane.store does not exist: create it", want)
		}
	}
	if err == nil {
		store, waiting, err = choose(stores, placed)
	}
	if store != "" {
		p.placed.add(vc.UID, store)
	} else {
		p.placed.wait(vc)
	}
	return store, waiting, err
}

// lockedStores returns all stores, and the number of control planes in each. The
// lock of the placements is held.
func (p *Provisioner) lockedStores(ctx context.Context) ([]tenancyv1alpha1.ControlPlaneStore, map[string]int64, error) {
	stores := &tenancyv1alpha1.ControlPlaneStoreList{}
	if err := p.client.List(ctx, stores); err != nil {
		return nil, nil, fmt.Errorf("list ControlPlaneStores: %w", err)
	}
	planes := &tenancyv1alpha1.HostedControlPlaneList{}
	if err := p.client.List(ctx, planes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list HostedControlPlanes: %w", err)
	}
	return stores.Items, p.placed.count(planes.Items), nil
}

// reference identifies a VirtualCluster.
func reference(vc *tenancyv1alpha1.VirtualCluster) tenancyv1alpha1.VirtualClusterReference {
	return tenancyv1alpha1.VirtualClusterReference{Namespace: vc.Namespace, Name: vc.Name, UID: vc.UID}
}
