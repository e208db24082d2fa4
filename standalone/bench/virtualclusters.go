package bench

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// fine is the interval at which a VirtualCluster is read.
const fine = 5 * time.Millisecond

func virtualCluster(name string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
}

// createReady creates VirtualClusters and waits until all are Ready.
func (s *standalone) createReady(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.client.Create(ctx, virtualCluster(name)); err != nil {
			return err
		}
	}
	return s.await(ctx, "Ready", hasCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue), names...)
}

// remove deletes VirtualClusters and waits until they are gone.
func (s *standalone) remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.client.Delete(ctx, virtualCluster(name)); err != nil {
			return err
		}
	}
	return s.await(ctx, "deleted", isGone, names...)
}

// condition reports whether a VirtualCluster is in a state. It receives the
// result of a read.
type condition func(*tenancyv1alpha1.VirtualCluster, error) (bool, error)

// await waits until each of the VirtualClusters is in a state.
func (s *standalone) await(ctx context.Context, state string, done condition, names ...string) error {
	for _, name := range names {
		vc := virtualCluster(name)
		if err := until(ctx, fine, "VirtualCluster "+name+" is "+state, func() (bool, error) {
			return done(vc, s.client.Get(ctx, client.ObjectKeyFromObject(vc), vc))
		}); err != nil {
			return err
		}
	}
	return nil
}

// hasCondition returns the state of a VirtualCluster with a condition.
func hasCondition(kind string, status metav1.ConditionStatus) condition {
	return func(vc *tenancyv1alpha1.VirtualCluster, err error) (bool, error) {
		return err == nil && meta.IsStatusConditionPresentAndEqual(vc.Status.Conditions, kind, status), err
	}
}

// either returns the state of a VirtualCluster that is in one of two.
func either(a, b condition) condition {
	return func(vc *tenancyv1alpha1.VirtualCluster, err error) (bool, error) {
		if in, err := a(vc, err); in || err != nil {
			return in, err
		}
		return b(vc, err)
	}
}

// isGone is the state of a VirtualCluster that does not exist.
func isGone(_ *tenancyv1alpha1.VirtualCluster, err error) (bool, error) {
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
