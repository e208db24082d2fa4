package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
)

const (
	// period is the interval of reconciles: three reads, and an apply that writes
	// nothing. So vc-manager needs no permission to watch Secrets.
	period = time.Minute
	// conflictDelay is how long after a conflict the Secrets are read again.
	conflictDelay = 100 * time.Millisecond
)

// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-store-authority,verbs=create;get;patch;update
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-store-members,verbs=create;get;patch;update
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-store-client,verbs=create;get;patch;update
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=controlplanestores,resourceNames=default,verbs=create;get;patch

// Reconciler ensures the certificates and the ControlPlaneStore of a Store.
type Reconciler struct {
	Secrets secrets.Keeper
	Store   Store

	// expiries has when the certificates expire, by their name.
	expiries sync.Map
}

// Names returns the names of the certificates.
func Names() []string { return []string{authority, members, clients} }

// Expiries returns the names of the certificates, and when they expire: those
// that this process has ensured.
func (r *Reconciler) Expiries(yield func(string, time.Time) bool) {
	for _, name := range Names() {
		end, _ := r.expiries.Load(name)
		if end, ok := end.(time.Time); ok && !yield(name, end) {
			return
		}
	}
}

// SetupWithManager adds the reconciler to a manager. It works in the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("store").WatchesRawSource(source.Func(r.first)).Complete(r)
}

// first enqueues the request that is repeated.
func (r *Reconciler) first(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: Name}})
	return nil
}

// Reconcile renews the certificates that need it, and ensures the
// ControlPlaneStore.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := errors.Join(r.certificates(ctx, time.Now()), r.object(ctx))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

// certificates ensures the Secrets. That of the authorities is written before
// they sign.
func (r *Reconciler) certificates(ctx context.Context, now time.Time) error {
	data, err := r.Secrets.Ensure(ctx, r.Store.secret(authority), func(data map[string][]byte) (map[string][]byte, error) {
		return renewAuthorities(data, now)
	})
	if err != nil {
		return err
	}
	authorities := pki.ParseAuthorities(data[authoritiesKey], data[authoritiesKeyKey], now)
	r.note(authority, authorities.Signer(now).CertPEM)
	ensure := func(name string, c certificate) error {
		data, err := r.Secrets.Ensure(ctx, r.Store.secret(name), func(data map[string][]byte) (map[string][]byte, error) {
			return c.renew(data, authorities, now)
		})
		r.note(name, data[certificateKey])
		return err
	}
	return errors.Join(ensure(members, ofMembers(r.Store)), ensure(clients, ofClient()))
}

// note records when a certificate expires. One that cannot be read is kept as it
// was.
func (r *Reconciler) note(name string, certificate []byte) {
	if end, err := pki.NotAfter(certificate); err == nil {
		r.expiries.Store(name, end)
	}
}

// object ensures the ControlPlaneStore. It applies nothing that an admin decides:
// how many control planes are placed in the store, and whether any are.
func (r *Reconciler) object(ctx context.Context) error {
	store := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"endpoints":         toAny(r.Store.endpoints()),
		"credentialsSecret": r.Store.secret(clients).Name,
		"capacity":          map[string]any{"storage": r.Store.Quota.String()},
	}}}
	store.SetGroupVersionKind(tenancyv1alpha1.GroupVersion.WithKind("ControlPlaneStore"))
	store.SetName(Name)
	apply := client.ApplyConfigurationFromUnstructured(store)
	if err := r.Secrets.Client.Apply(ctx, apply, client.FieldOwner(r.Secrets.Owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ControlPlaneStore %s: %w", Name, err)
	}
	return nil
}

// toAny returns strings as unstructured objects have them.
func toAny(all []string) []any {
	values := make([]any, len(all))
	for i, s := range all {
		values[i] = s
	}
	return values
}
