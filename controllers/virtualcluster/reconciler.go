// Package virtualcluster brings VirtualClusters to life and takes them away:
// the tenant's root namespace, its control plane by one of the provisioners,
// the Secret with its admin kubeconfig, and a status that says where all of it
// stands.
package virtualcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// Finalizer keeps a VirtualCluster until nothing of the tenant is left.
const Finalizer = names.Domain + "/virtualcluster"

// fieldOwner owns what the manager applies.
const fieldOwner = client.FieldOwner("vc-manager")

const (
	// conflictRetry is when to reconcile again after the cache turned out to be
	// stale.
	conflictRetry = 50 * time.Millisecond
	// failureRetry is the delay after a failure that an admin has to correct. A
	// changed spec is acted on at once.
	failureRetry = 15 * time.Second
	// progressRetry is when to reconcile again while an operation is in
	// progress, in case the event of its end is lost.
	progressRetry = 10 * time.Second
)

// Reconciler brings one VirtualCluster to what its spec says. Nothing in it
// waits.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Live reads around the cache, where a stale answer could leave something
	// behind or touch what is not ours.
	Live client.Reader
	// Provisioners are the ways to run control planes that this manager has.
	Provisioners provisioner.Registry
	// Default is the provisioner of VirtualClusters that name none.
	Default tenancyv1alpha1.ProvisionerType
	// ServiceAddresses is the pool of Service addresses that tenants get parts
	// of.
	ServiceAddresses servicecidr.Pool
	// SecondaryServiceAddresses is the same of the other IP family.
	SecondaryServiceAddresses servicecidr.Pool
	// Gateway is in front of the control planes, if there is one.
	Gateway Gateway
	// Events records what happened where a person would look.
	Events events.EventRecorder
	// Metrics are the metrics of the reconciler; nil for none.
	Metrics *Metrics

	// allotments keep two tenants from one part of the addresses.
	allotments allotments
}

// outcome is what one reconcile reached. The status and the time of the next
// one follow from it.
type outcome struct {
	// chosen is zero if that was not reached.
	chosen       choice
	controlPlane provisioner.ControlPlane
	// alias is whether the tenant has the alias of the spec.
	alias aliasState
	// waitingFor says what a deletion waits for.
	waitingFor string
	// err is why it went no further; a provisioner.Failure is for an admin to
	// correct.
	err error
}

// Reconcile does one round for the VirtualCluster of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, vc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	result, err := r.reconcile(ctx, vc)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (reconcile.Result, error) {
	if !vc.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, vc)
	}
	if err := r.patchFinalizer(ctx, vc, controllerutil.AddFinalizer); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.allotServiceRanges(ctx, vc); err != nil {
		return r.report(ctx, vc.DeepCopy(), vc, outcome{err: err})
	}
	before := vc.DeepCopy()
	o := r.ensure(ctx, vc)
	var unknown error
	o.alias, unknown = r.findAlias(ctx, vc)
	result, err := r.report(ctx, before, vc, o)
	return result, errors.Join(err, unknown)
}

// ensure makes what the tenant lacks, in order: root namespace, control plane,
// and what others have to know of it.
func (r *Reconciler) ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (o outcome) {
	key, err := clusterKey(vc)
	if err != nil {
		return outcome{err: err}
	}
	root, err := r.findRoot(ctx, vc, key)
	if err != nil {
		return outcome{err: err}
	}
	kind := chooseProvisioner(vc, root, r.Default)
	o.chosen = choice{provisioner: kind, offered: r.Provisioners.String()}
	way, err := findProvisioner(r.Provisioners, kind)
	if err != nil {
		o.err = err
		return o
	}
	o.chosen.capabilities = way.Capabilities()
	if isTerminating(root) {
		o.controlPlane.Message = fmt.Sprintf("namespace %s is being deleted; it is made again when it is gone", key)
		return o
	}
	if o.err = r.ensureRoot(ctx, vc, root, key, kind); o.err != nil {
		return o
	}
	vc.Status.ClusterNamespace = key
	o.controlPlane, o.err = r.ensureControlPlane(ctx, vc, way)
	return o
}

// ensureControlPlane has the provisioner bring up the control plane, and
// publishes what others have to know of it.
func (r *Reconciler) ensureControlPlane(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, way provisioner.Provisioner,
) (provisioner.ControlPlane, error) {
	controlPlane, err := way.Ensure(ctx, vc)
	if err != nil || !controlPlane.Ready {
		return controlPlane, err
	}
	if err := r.ensureKubeconfig(ctx, vc, &controlPlane, way.Capabilities().Converted); err != nil {
		return controlPlane, err
	}
	if err := r.ensureGatewayAccess(ctx, vc, controlPlane); err != nil {
		return controlPlane, err
	}
	return controlPlane, r.ensureKubeletClientCA(ctx, vc, controlPlane.KubeletClientCA)
}

// patchFinalizer adds or removes the finalizer, if that changes anything.
func (r *Reconciler) patchFinalizer(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, change func(client.Object, string) bool,
) error {
	before := vc.DeepCopy()
	if !change(vc, Finalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, vc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if err != nil {
		return fmt.Errorf("change finalizers of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return nil
}

func isTerminating(namespace *corev1.Namespace) bool {
	return namespace != nil && !namespace.DeletionTimestamp.IsZero()
}
