// Package servingcert makes and renews the serving certificate of a program. All
// of its replicas share a Secret, which holds the certificate and the authorities
// that sign it.
package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
)

const (
	// period is the interval of checks whether the certificate is to be renewed.
	period = time.Hour
	// conflictDelay is how long after a conflict the Secret is read again.
	conflictDelay = 100 * time.Millisecond
)

var errNotReady = errors.New("the serving certificate is not ready yet")

// Keeper keeps a serving certificate. Each replica of a program has one.
type Keeper struct {
	// Secret is where the certificate is kept. The program needs the verbs
	// create, get, list, patch, update and watch for this name.
	Secret types.NamespacedName
	// Hosts are the names and addresses that the certificate is for.
	Hosts Hosts
	// Publish makes the authorities, in PEM, known to clients. It is called
	// before the replica serves a certificate that they have signed. Nil for
	// clients that read them from the Secret.
	Publish func(ctx context.Context, authorities []byte) error
	// Watch is an object that Publish writes, by its name; a change of it leads
	// to a call of Publish. Nil for none.
	Watch client.Object

	secrets secrets.Keeper
	serving atomic.Pointer[tls.Certificate]
}

// GetCertificate returns the certificate for a connection, for a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := k.serving.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errNotReady
}

// NotAfter returns when the certificate expires that the replica serves. It
// reports false if there is none yet.
func (k *Keeper) NotAfter() (time.Time, bool) {
	certificate := k.serving.Load()
	if certificate == nil {
		return time.Time{}, false
	}
	return certificate.Leaf.NotAfter, true
}

// SetupWithManager adds the keeper to the manager of the program with the name
// owner, where it works whether the replica is the leader or not.
func (k *Keeper) SetupWithManager(mgr manager.Manager, owner string) error {
	k.secrets = secrets.Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: owner}
	byName := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	watched := map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Namespaces: map[string]cache.Config{k.Secret.Namespace: {FieldSelector: byName(k.Secret.Name)}},
	}}
	if k.Watch != nil {
		watched[k.Watch] = cache.ByObject{Field: byName(k.Watch.GetName())}
	}
	// The manager's own cache may hold other objects of these kinds.
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: watched,
	})
	if err != nil {
		return fmt.Errorf("make the cache of the serving certificate: %w", err)
	}
	if err := mgr.Add(everyReplica{objects}); err != nil {
		return fmt.Errorf("add the cache of the serving certificate: %w", err)
	}
	same := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: k.Secret}}
	})
	b := builder.ControllerManagedBy(mgr).Named("servingcert").
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		WatchesRawSource(source.Func(k.first))
	for object := range watched {
		b = b.WatchesRawSource(source.Kind(objects, object, same))
	}
	if err := b.Complete(k); err != nil {
		return fmt.Errorf("set up the controller of the serving certificate: %w", err)
	}
	return nil
}

// everyReplica is a cache that replicas have which do not hold the Lease, too.
type everyReplica struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable. A cache that is
// made of several ones does not, so that only the leader would start it.
func (everyReplica) NeedLeaderElection() bool { return false }

// first enqueues the request of a program that starts without a Secret.
func (k *Keeper) first(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: k.Secret})
	return nil
}

// Reconcile renews the certificate if it has to be, publishes its authorities
// and serves it.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := k.renew(ctx)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil // another replica was faster
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

func (k *Keeper) renew(ctx context.Context) error {
	kept, err := k.ensure(ctx)
	if err != nil {
		return err
	}
	if k.Publish != nil {
		if err := k.Publish(ctx, kept.trusted()); err != nil {
			return err
		}
	}
	certificate, err := tls.X509KeyPair(kept.serving.CertPEM, kept.serving.KeyPEM)
	if err != nil {
		return fmt.Errorf("read the serving certificate of Secret %s: %w", k.Secret, err)
	}
	k.serving.Store(&certificate)
	return nil
}

// ensure returns what the Secret holds, after it has renewed it if needed, and has
// taken the step that an admin asks for.
func (k *Keeper) ensure(ctx context.Context) (kept material, _ error) {
	err := k.secrets.Change(ctx, k.Secret, func(secret *corev1.Secret) (err error) {
		now := time.Now()
		before, step := read(secret.Data, now), Step(secret.Annotations[names.RotateCA])
		if err := step.check(before.authorities); err != nil {
			log.FromContext(ctx).Error(err, "Cannot rotate the CA of the serving certificate")
			step = ""
		}
		if kept, err = before.renew(k.Hosts, step, now); err != nil {
			return err
		}
		secret.Data = kept.data()
		if step != "" {
			delete(secret.Annotations, names.RotateCA)
		}
		return nil
	})
	return kept, err
}
