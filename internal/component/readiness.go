package component

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// leaseTimeout bounds the request of a readiness check.
	leaseTimeout = 2 * time.Second
	// watchAgain is the delay after which a watch that could not be started is retried.
	watchAgain = time.Second
	// ownNamespace is the file with the namespace of a pod's service account.
	ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

var (
	errNotSynced  = errors.New("the caches have not synced yet")
	errNotStarted = errors.New("the program is starting")
	errNoHolder   = errors.New("no replica holds the Lease")
)

// AddReadiness adds the checks of the program of that name, whose cache holds
// these objects: /healthz reports whether the process answers, /readyz whether
// it works, which takes synced caches, or stands by for another replica that
// holds the Lease.
func (o *Options) AddReadiness(mgr manager.Manager, name string, objects ...client.Object) error {
	if err := AddChecks(mgr); err != nil {
		return err
	}
	r := &readiness{elected: mgr.Elected(), synced: make(chan struct{})}
	if o.LeaderElect {
		lease, err := o.lease(mgr, name)
		if err != nil {
			return err
		}
		r.held = lease
	}
	if err := mgr.Add(watching{cache: mgr.GetCache(), objects: objects, synced: r.synced}); err != nil {
		return fmt.Errorf("add what waits for the caches: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", r.check); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// lease returns a function that fails unless a replica holds the Lease.
func (o *Options) lease(mgr manager.Manager, name string) (func(context.Context) error, error) {
	leases, err := coordination.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up a client of Leases: %w", err)
	}
	return func(ctx context.Context) error {
		namespace, err := o.leaseNamespace()
		if err != nil {
			return err
		}
		lease, err := leases.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get Lease %s/%s: %w", namespace, name, err)
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errNoHolder
		}
		return nil
	}, nil
}

// leaseNamespace returns the namespace of the Lease, by default that of the pod.
func (o *Options) leaseNamespace() (string, error) {
	if o.LeaderElectNamespace != "" {
		return o.LeaderElectNamespace, nil
	}
	namespace, err := os.ReadFile(ownNamespace)
	if err != nil {
		return "", fmt.Errorf("read the pod's namespace: %w", err)
	}
	return strings.TrimSpace(string(namespace)), nil
}

// readiness is the state of a program.
type readiness struct {
	// elected is closed when this replica works, synced when its caches have synced.
	elected <-chan struct{}
	synced  chan struct{}
	// held fails unless a replica holds the Lease; nil without leader election.
	held func(context.Context) error
}

// check is a readiness check.
func (r *readiness) check(req *http.Request) error {
	switch {
	case closed(r.synced):
		return nil
	case closed(r.elected):
		return errNotSynced
	case r.held == nil:
		return errNotStarted
	}
	ctx, cancel := context.WithTimeout(req.Context(), leaseTimeout)
	defer cancel()
	return r.held(ctx)
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// watching waits for the cache of a program that works.
type watching struct {
	cache   cache.Cache
	objects []client.Object
	synced  chan<- struct{}
}

// NeedLeaderElection keeps a replica that stands by from watching.
func (watching) NeedLeaderElection() bool { return true }

// Start waits until the cache holds the objects of all kinds that the super
// cluster serves.
func (w watching) Start(ctx context.Context) error {
	for _, obj := range w.objects {
		for {
			_, err := w.cache.GetInformer(ctx, obj)
			if err == nil || meta.IsNoMatchError(err) {
				break
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(watchAgain):
			}
		}
	}
	if ctx.Err() == nil {
		close(w.synced)
	}
	return nil
}
