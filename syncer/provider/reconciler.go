package provider

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// connecting is the number of tenants that are connected to concurrently. A
// tenant that does not answer occupies one of these workers for the probe's
// timeout, and then waits for its backoff: it takes several hundred of them to
// delay another tenant.
const connecting = 128

// Connecting to a tenant is retried after retryFirst, and the delay doubles
// each time, up to retryMost.
const retryFirst, retryMost = 200 * time.Millisecond, 30 * time.Second

// SetupWithManager adds a controller for the VirtualClusters of the manager's
// cluster. The manager's cache has to hold the Secrets and Namespaces with the
// label names.VCName.
func (p *Provider) SetupWithManager(mgr ctrl.Manager) error {
	p.super, p.reader = mgr.GetClient(), mgr.GetAPIReader()
	toVC := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if obj.GetName() != names.AdminKubeconfigSecret {
			return nil
		}
		return []reconcile.Request{{NamespacedName: names.OwnerKey(obj.GetLabels())}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("tenant-provider").
		For(&tenancyv1alpha1.VirtualCluster{}).
		// The contents of other Secrets, such as copies of tenants' own, must
		// not be cached.
		Watches(&corev1.Secret{}, toVC, builder.OnlyMetadata).
		WatchesRawSource(source.Channel(p.changes, &handler.TypedEnqueueRequestForObject[*tenancyv1alpha1.VirtualCluster]{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: connecting,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		}).
		Complete(p)
}

// Reconcile engages or disengages one tenant and writes the condition Syncing.
func (p *Provider) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	select {
	case <-p.started:
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
	ctx, mine, end := p.visit(ctx, req.NamespacedName)
	defer end()
	if !mine {
		p.leave(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := p.super.Get(ctx, req.NamespacedName, vc); err != nil {
		p.leave(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if vc.DeletionTimestamp != nil {
		p.leave(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	again, err := p.follow(ctx, vc)
	return reconcile.Result{RequeueAfter: again}, err
}

// leave disengages a tenant that is being deleted, or that another replica
// serves.
func (p *Provider) leave(vc types.NamespacedName) {
	p.disengage(vc)
	p.mu.Lock()
	delete(p.refusals, vc)
	p.mu.Unlock()
	p.sleepers.forget(vc)
	p.metrics.forget(vc)
}

// follow engages or disengages the tenant of a VirtualCluster, and writes the
// condition. A tenant that sleeps is disengaged before its control plane stops,
// so that no request to it fails. It returns when to reconcile again; zero to wait for an event.
func (p *Provider) follow(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (time.Duration, error) {
	if awake := resting(vc); awake != nil {
		return p.rest(ctx, vc, awake)
	}
	p.sleepers.awake(vc.Status.ClusterNamespace)
	err := p.connect(ctx, vc)
	if why, ok := errors.AsType[*refusal](err); ok {
		return p.reportRefusal(ctx, vc, why)
	}
	if why, ok := errors.AsType[problem](err); ok {
		err = errors.Join(err, p.report(ctx, vc, why))
		if why.reason == tenancyv1alpha1.ReasonKubeconfigInvalid {
			// Only a change of the Secret corrects that, and its event triggers
			// a reconcile.
			return 0, reconcile.TerminalError(err)
		}
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	return 0, p.reportEngaged(ctx, vc)
}

// reportEngaged writes the condition of an engaged tenant.
func (p *Provider) reportEngaged(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	t, pods := p.engaged(client.ObjectKeyFromObject(vc)), 0
	if t != nil {
		pods = t.cluster.removal.unconfirmed()
	}
	switch {
	case t == nil:
		// The control plane is not ready.
	case pods > 0:
		return p.report(ctx, vc, unconfirmedRemoval(pods))
	case !t.cluster.Healthy():
		return p.report(ctx, vc, unreachable(t.cluster.config.Host, nil))
	case t.cluster.synced.Load():
		return p.reportSyncing(ctx, vc, t.cluster)
	}
	p.metrics.observe(client.ObjectKeyFromObject(vc), tenancyv1alpha1.ReasonStarting)
	return nil
}

// connect engages a tenant, and applies changes to an engaged one. It does not
// engage a tenant whose control plane is not ready yet; one that is engaged
// stays so while its control plane restarts.
func (p *Provider) connect(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	key := client.ObjectKeyFromObject(vc)
	current := p.engaged(key)
	if current == nil && !meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady) {
		return nil
	}
	root, config, err := p.read(ctx, vc)
	if err != nil || config == nil {
		return err
	}
	if err := p.refusal(vc, key, current, config); err != nil {
		return err
	}
	if current != nil && current.serves(vc, config) {
		current.cluster.removal.confirm(vc)
		return p.refresh(current, translate.NewTenant(vc, root.UID))
	}
	p.disengage(key)
	return p.engage(ctx, vc, root, config)
}

// serves reports whether an engagement is still valid for a VirtualCluster and
// its kubeconfig. The kinds to sync and the tenant's policy are fixed when it
// begins.
func (t *tenant) serves(vc *tenancyv1alpha1.VirtualCluster, config []byte) bool {
	was, now := t.cluster.Tenant(), translate.NewTenant(vc, "")
	return t.uid == vc.UID && t.kubeconfig == sha256.Sum256(config) && !t.cluster.replaced.Load() &&
		equality.Semantic.DeepEqual(was.Sync, now.Sync) && equality.Semantic.DeepEqual(was.Policy, now.Policy)
}

// refresh engages a tenant again, with the changes.
func (p *Provider) refresh(t *tenant, who translate.Tenant) error {
	t.cluster.tenant.Store(&who)
	return p.aware.Engage(p.ctx, multicluster.ClusterName(who.Key), t.cluster)
}

// read returns a tenant's root namespace and the kubeconfig for the platform;
// nil until vc-manager has created them.
func (p *Provider) read(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*corev1.Namespace, []byte, error) {
	root := &corev1.Namespace{}
	name := client.ObjectKey{Name: vc.Status.ClusterNamespace}
	err := p.super.Get(ctx, name, root)
	if apierrors.IsNotFound(err) {
		// The cache can be behind that of VirtualClusters, and no event would follow.
		err = p.reader.Get(ctx, name, root)
	}
	if err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if root.Annotations[names.VCUID] != string(vc.UID) {
		return nil, nil, problem{
			tenancyv1alpha1.ReasonNamespaceConflict,
			fmt.Sprintf("Namespace %s does not belong to this VirtualCluster", root.Name),
			errors.New("its annotation " + names.VCUID + " names another UID"),
		}
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: root.Name, Name: names.AdminKubeconfigSecret}
	if err := p.reader.Get(ctx, key, secret); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	return root, names.PlatformKubeconfig(secret.Data), nil
}
