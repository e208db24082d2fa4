package component

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// apiPoll is the interval between checks for the CRDs, and apiRemind the
// interval between log messages about them.
const apiPoll, apiRemind = 2 * time.Second, time.Minute

// AwaitAPI makes a manager wait until the super cluster serves the tenancy API,
// so that the CRDs may be installed after the program. Until then or until ctx
// ends, the manager serves its probes and starts nothing else. AwaitAPI fails
// if the super cluster does not answer.
func AwaitAPI(ctx context.Context, mgr manager.Manager) error {
	err := checkAPI(mgr.GetRESTMapper())
	if !meta.IsNoMatchError(err) {
		return err
	}
	return mgr.Add(apiWaiter{Cache: mgr.GetCache(), ended: ctx, mgr: mgr})
}

// apiWaiter is a runnable that a manager regards as one with a cache: it is
// started with the caches, and what needs these is started when all have
// synced.
type apiWaiter struct {
	cache.Cache

	// ended ends with the program. The context that the manager passes to
	// WaitForCacheSync outlives it.
	ended context.Context
	mgr   manager.Manager
}

// Start does nothing: the manager starts its cache itself.
func (apiWaiter) Start(context.Context) error { return nil }

// GetCache returns the cache to wait for.
func (w apiWaiter) GetCache() cache.Cache { return w }

// WaitForCacheSync waits until the super cluster serves the tenancy API. It
// returns true at the end of the program, too: a manager waits for ever for
// caches that do not sync.
func (w apiWaiter) WaitForCacheSync(context.Context) bool {
	logger, logged := w.mgr.GetLogger(), time.Time{}
	for {
		err := checkAPI(w.mgr.GetRESTMapper())
		if err == nil {
			logger.Info("The super cluster serves the tenancy API")
			return true
		}
		if time.Since(logged) >= apiRemind {
			logger.Info("Waiting for the CRDs", "cause", err.Error())
			logged = time.Now()
		}
		select {
		case <-w.ended.Done():
			return true
		case <-time.After(apiPoll):
		}
	}
}

// checkAPI returns an error unless the super cluster serves the tenancy API.
func checkAPI(mapper meta.RESTMapper) error {
	kind := tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("find the tenancy API in the super cluster; install the CRDs in config/crd: %w", err)
	}
	if err != nil {
		return fmt.Errorf("find the tenancy API in the super cluster: %w", err)
	}
	return nil
}
