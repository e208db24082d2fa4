package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// identity asks the tenant's apiserver which cluster it serves: the UID of the namespace kube-system, which is made once in the
// life of a cluster. Only an admin of a running cluster gets it.
func (c *Cluster) identity(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	system := &corev1.Namespace{}
	err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
	return system.UID, err
}

// probe says whether the tenant's apiserver answers.
func (c *Cluster) probe(ctx context.Context) error {
	_, err := c.identity(ctx)
	return err
}

// Verify makes sure that the tenant's apiserver still serves the cluster that was engaged. After an error that says otherwise the
// tenant is disengaged, and not engaged again before an admin confirms it.
func (c *Cluster) Verify(ctx context.Context) error {
	uid, err := c.identity(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if uid == c.uid {
		return nil
	}
	if c.replaced.CompareAndSwap(false, true) {
		c.changed()
	}
	return fmt.Errorf("the tenant's apiserver serves another cluster than before: its namespace %s has UID %q, not %q",
		metav1.NamespaceSystem, uid, c.uid)
}

// recognize compares the cluster that a tenant's apiserver serves with the one that it served before. The first is remembered,
// and so is another one that an admin confirmed: what ran for the one before is then to go.
func (p *Provider) recognize(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, c *Cluster) error {
	uid, known := c.uid, types.UID(root.Annotations[names.TenantUID])
	switch {
	case known == uid:
		return nil
	case known != "" && vc.Annotations[names.ConfirmIdentity] != string(uid):
		return problem{
			tenancyv1alpha1.ReasonIdentityChanged,
			fmt.Sprintf("The tenant's apiserver serves another cluster than the one whose objects run in the super cluster; "+
				"nothing is synced, and what runs goes on. If the tenant's data can be restored, restore it. "+
				"To have what runs replaced by what the new cluster declares, annotate the VirtualCluster with %s=%s",
				names.ConfirmIdentity, uid),
			fmt.Errorf("the UID of its namespace %s was %s", metav1.NamespaceSystem, known),
		}
	}
	remembered := root.DeepCopy()
	remembered.Annotations[names.TenantUID] = string(uid)
	if err := p.super.Patch(ctx, remembered, client.MergeFrom(root)); err != nil {
		return fmt.Errorf("remember the tenant's identity: %w", err)
	}
	if known != "" {
		c.removal.waive()
	}
	return nil
}
