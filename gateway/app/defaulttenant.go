package app

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// defaultTenant creates the VirtualCluster of callers without a tenant, once.
type defaultTenant struct {
	client.Client

	of  types.NamespacedName
	log logr.Logger
}

// NeedLeaderElection says that any replica creates it.
func (*defaultTenant) NeedLeaderElection() bool { return false }

// Start creates the VirtualCluster, unless it exists. It tries again with
// backoff until then.
func (d *defaultTenant) Start(ctx context.Context) error {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Cap: time.Minute, Steps: 10}
	for {
		err := d.create(ctx)
		if err == nil {
			return nil
		}
		d.log.Error(err, "Failed to create the default tenant, will retry")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff.Step()):
		}
	}
}

func (d *defaultTenant) create(ctx context.Context) error {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: d.of.Namespace, Name: d.of.Name}}
	err := d.Get(ctx, d.of, &tenancyv1alpha1.VirtualCluster{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := d.Create(ctx, vc, client.FieldOwner(name)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create VirtualCluster %s (see --default-tenant): %w", d.of, err)
	}
	return nil
}
