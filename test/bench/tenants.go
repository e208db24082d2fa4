package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// starting is the number of control planes that start at a time.
	starting = 4
	// removing is the number of tenants that are deleted at a time.
	removing = 20
	// kubeconfigKey is the key in the Secret of a VirtualCluster with the
	// provisioner External.
	kubeconfigKey = "kubeconfig"
)

// tenants creates or deletes tenants until there are n, each with a control
// plane of its own that has run a pod.
func (w *world) tenants(ctx context.Context, n int) ([]*local.Tenant, error) {
	if n < len(w.fleet) {
		surplus := w.fleet[n:]
		w.fleet = w.fleet[:n]
		return w.fleet, w.removeTenants(ctx, surplus)
	}
	missing := n - len(w.fleet)
	if missing == 0 {
		return w.fleet, nil
	}
	w.progress.sayf("starting control planes of tenants, %d more", missing)
	made, err := w.newTenants(ctx, "tenant", len(w.fleet), missing)
	if err != nil {
		return nil, err
	}
	w.fleet = append(w.fleet, made...)
	return w.fleet, nil
}

// newTenants creates tenants with a name and numbers from first, each of which
// runs a pod on each node.
func (w *world) newTenants(ctx context.Context, name string, first, count int) ([]*local.Tenant, error) {
	made, err := w.emptyTenants(ctx, name, first, count)
	if err != nil {
		return nil, err
	}
	return made, w.populate(ctx, made)
}

// emptyTenants creates tenants with a name and numbers from first.
func (w *world) emptyTenants(ctx context.Context, name string, first, count int) ([]*local.Tenant, error) {
	made := make([]*local.Tenant, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(starting)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = w.newTenant(ctx, virtualCluster(fmt.Sprintf("%s-%03d", name, first+i)))
			return err
		})
	}
	return made, group.Wait()
}

// newTenant creates a tenant and waits until it is ready.
func (w *world) newTenant(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*local.Tenant, error) {
	if err := w.super.Client.Create(ctx, vc); err != nil {
		return nil, fmt.Errorf("create the VirtualCluster: %w", err)
	}
	return w.awaitTenant(ctx, vc)
}

// awaitTenant waits until a tenant is ready. It waits as long as any of the
// control planes makes progress.
func (w *world) awaitTenant(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*local.Tenant, error) {
	for began := time.Now(); ; {
		err := w.super.WaitReady(ctx, vc)
		if err == nil {
			return w.super.Connect(ctx, vc)
		}
		if ctx.Err() != nil || time.Since(began) > patience {
			return nil, err
		}
	}
}

// populate creates a pod of each tenant on each node, which exists as long as
// the tenant, as in a tenant in use: the first pod on a node costs a virtual
// node, and the first of all a namespace.
func (w *world) populate(ctx context.Context, tenants []*local.Tenant) error {
	nodes := &corev1.NodeList{}
	if err := w.super.Client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, t := range tenants {
		key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "default"}
		if err := awaitObject(ctx, t.Client, key, &corev1.ServiceAccount{}); err != nil {
			return err
		}
	}
	l, err := w.newLoad(ctx, ofTenants(tenants))
	if err != nil {
		return err
	}
	defer l.close()
	for i := range nodes.Items {
		there := func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes.Items[i].Labels[corev1.LabelHostname]}
		}
		if err := l.pour(ctx, all(tenants), fmt.Sprintf("node%d-", i), len(tenants), starting, there); err != nil {
			return err
		}
	}
	return l.await(ctx, "", shown, len(tenants)*len(nodes.Items))
}

// removeTenants deletes tenants and waits until they are gone.
func (w *world) removeTenants(ctx context.Context, tenants []*local.Tenant) error {
	w.progress.sayf("removing tenants, %d of them", len(tenants))
	for some := range slices.Chunk(tenants, removing) {
		for _, t := range some {
			if err := w.super.Client.Delete(ctx, t.VC); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete tenant %s: %w", t.VC.Name, err)
			}
		}
		for _, t := range some {
			if err := w.awaitGone(ctx, t.VC); err != nil {
				return err
			}
		}
	}
	return nil
}

// virtualCluster returns the VirtualCluster of a tenant. The copies of its pods
// have the label of their load.
func virtualCluster(name string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: name},
		Spec: tenancyv1alpha1.VirtualClusterSpec{Sync: &tenancyv1alpha1.SyncSpec{
			Metadata: []tenancyv1alpha1.MetadataSync{{Kinds: []string{"Pod"}, Labels: []string{ofLoad}}},
		}},
	}
}

// external creates a tenant with the provisioner External and a kubeconfig in a
// Secret of the tenant's name, and waits until it is ready.
func (w *world) external(ctx context.Context, name string, kubeconfig []byte) (*local.Tenant, error) {
	vc, err := w.createExternal(ctx, name, kubeconfig)
	if err != nil {
		return nil, err
	}
	return w.awaitTenant(ctx, vc)
}

// createExternal does the same and does not wait. It updates a Secret that
// exists.
func (w *world) createExternal(ctx context.Context, name string, kubeconfig []byte) (*tenancyv1alpha1.VirtualCluster, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, w.super.Client, secret, func() error {
		secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	vc := virtualCluster(name)
	vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
	vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: name}
	if err := w.super.Client.Create(ctx, vc); err != nil {
		return nil, fmt.Errorf("create the VirtualCluster: %w", err)
	}
	return vc, nil
}

// kubeconfigOf returns the kubeconfig of a tenant's admin.
func (w *world) kubeconfigOf(ctx context.Context, t *local.Tenant) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}
	if err := w.super.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", t.VC.Name, err)
	}
	return secret.Data[names.AdminKubeconfigKey], nil
}

// awaitObject waits until an object exists.
func awaitObject(ctx context.Context, c client.Client, key client.ObjectKey, obj client.Object) error {
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, obj)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for %T %s: %w", obj, key, err)
	}
	return nil
}

// awaitGone deletes an object of the super cluster, unless it is being deleted
// already, and waits until it is gone.
func (w *world) awaitGone(ctx context.Context, obj client.Object) error {
	if err := w.super.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
	}
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		err := w.super.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the deletion of %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}
