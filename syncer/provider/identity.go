package provider

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// identity identifies the cluster that an apiserver serves, and its state.
type identity struct {
	// uid is the UID of the namespace kube-system, which is created once in the
	// life of a cluster; empty before.
	uid types.UID
	// revision is the current resource version.
	revision string
}

// identify reads the identity of the tenant's cluster. Only an admin of a
// running cluster can read it.
func (c *Cluster) identify(ctx context.Context) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list := &corev1.NamespaceList{}
	if err := c.client.List(ctx, list, client.MatchingFields{"metadata.name": metav1.NamespaceSystem}); err != nil {
		return identity{}, err
	}
	found := identity{revision: list.ResourceVersion}
	for i := range list.Items {
		if list.Items[i].Name != metav1.NamespaceSystem || !isUID(list.Items[i].UID) {
			return identity{}, fmt.Errorf("the tenant's apiserver returns another namespace than %s, or one without a UID", metav1.NamespaceSystem)
		}
		found.uid = list.Items[i].UID
	}
	return found, nil
}

// isUID reports whether a UID can be stored in an annotation and shown to an
// admin.
func isUID(uid types.UID) bool {
	return len(validation.IsDNS1123Label(strings.ToLower(string(uid)))) == 0
}

// remember records the cluster that the tenant's apiserver serves as the one
// that is engaged.
func (c *Cluster) remember(ctx context.Context) error {
	now, err := c.identify(ctx)
	c.uid = now.uid
	if err == nil && c.uid == "" {
		return fmt.Errorf("the tenant's apiserver has no namespace %s yet", metav1.NamespaceSystem)
	}
	return err
}

// probe returns an error unless the tenant's apiserver answers.
func (c *Cluster) probe(ctx context.Context) error {
	_, err := c.identify(ctx)
	return err
}

// Verify returns an error unless the tenant's apiserver still serves the
// cluster that was engaged, and no earlier state of it. If it serves another,
// the tenant is disengaged; another cluster is only engaged after an admin
// confirmed it.
func (c *Cluster) Verify(ctx context.Context) error {
	newest := c.reopened.newest()
	now, err := c.identify(ctx)
	switch {
	case err != nil:
		return err
	case now.uid != c.uid:
		err = fmt.Errorf("the tenant's apiserver serves another cluster than before: its namespace %s has UID %q, not %q",
			metav1.NamespaceSystem, now.uid, c.uid)
	case older(now.revision, newest):
		err = fmt.Errorf("the tenant's apiserver serves an earlier state than before: it is at revision %s, and was at %s",
			now.revision, newest)
	default:
		return nil
	}
	if c.replaced.CompareAndSwap(false, true) {
		c.changed()
	}
	return err
}

// older reports whether one resource version is older than another. It is false
// if they cannot be compared.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// recognize compares the cluster that a tenant's apiserver serves with the one
// that it served before. It remembers the first, and another one if an admin
// confirmed it: the pods of the previous one are then deleted.
func (p *Provider) recognize(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, c *Cluster) error {
	uid, known := c.uid, types.UID(root.Annotations[names.TenantUID])
	switch {
	case known == uid:
		return nil
	case known != "" && vc.Annotations[names.ConfirmIdentity] != string(uid):
		return problem{
			tenancyv1alpha1.ReasonIdentityChanged,
			fmt.Sprintf("The tenant's apiserver serves another cluster than the one whose objects run in the super cluster; "+
				"nothing is synced, and running pods keep running. If the tenant's data can be restored, restore it. "+
				"To replace these objects by those of the new cluster, annotate the VirtualCluster with %s=%s",
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
