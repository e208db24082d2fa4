package rules

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
)

const (
	// retryFirst and retryMost bound the backoff of a condition that could not
	// be written.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Minute
	// recheckAfter is the interval of checking whether this replica now serves
	// a tenant.
	recheckAfter = 10 * time.Second
)

// Start follows the rules of the VirtualClusters until ctx is done.
func (r *Rules) Start(ctx context.Context) error {
	informer, err := r.env.Cache.GetInformer(ctx, &tenancyv1alpha1.VirtualCluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch VirtualClusters: %w", err)
	}
	registration, err := informer.AddEventHandler(r.handler())
	if err != nil {
		return fmt.Errorf("watch VirtualClusters: %w", err)
	}
	var work sync.WaitGroup
	work.Go(func() { r.work(ctx) })
	<-ctx.Done()
	r.changed.ShutDown()
	work.Wait()
	return informer.RemoveEventHandler(registration)
}

// handler enqueues a VirtualCluster to update its condition, and retries the
// rejected objects of its tenant when its rules change.
func (r *Rules) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if vc, ok := obj.(*tenancyv1alpha1.VirtualCluster); ok {
				r.changed.Add(client.ObjectKeyFromObject(vc))
			}
		},
		UpdateFunc: func(before, after any) {
			was, okWas := before.(*tenancyv1alpha1.VirtualCluster)
			now, okNow := after.(*tenancyv1alpha1.VirtualCluster)
			if !okWas || !okNow {
				return
			}
			r.changed.Add(client.ObjectKeyFromObject(now))
			same := equality.Semantic.DeepEqual(rulesOf(was), rulesOf(now)) && equality.Semantic.DeepEqual(was.Labels, now.Labels)
			if key := now.Status.ClusterNamespace; key != "" && !same {
				r.env.Retry(key)
			}
		},
		DeleteFunc: func(obj any) {
			if vc, ok := lastknown.Of[*tenancyv1alpha1.VirtualCluster](obj); ok {
				r.forget(vc)
			}
		},
	}
}

func rulesOf(vc *tenancyv1alpha1.VirtualCluster) []tenancyv1alpha1.QuotaRule {
	if vc.Spec.Quota == nil {
		return nil
	}
	return vc.Spec.Quota.Rules
}

// work updates conditions until the queue is shut down.
func (r *Rules) work(ctx context.Context) {
	for {
		key, shutdown := r.changed.Get()
		if shutdown {
			return
		}
		switch again, err := r.updateCondition(ctx, key); {
		case err != nil && ctx.Err() == nil:
			r.env.Logger.Error(err, "Cannot write the condition RulesValid; retrying", "virtualcluster", key)
			r.changed.AddRateLimited(key)
		case again:
			r.changed.AddAfter(key, recheckAfter)
		default:
			r.changed.Forget(key)
		}
		r.changed.Done(key)
	}
}
