package converted

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// shelved are the resources of the tenant's objects in the root namespace.
var shelved = []schema.GroupResource{
	{Group: names.ShelvedGroup, Resource: "clusterroles"}, {Group: names.ShelvedGroup, Resource: "clusterrolebindings"},
}

const shelfVersion = "v1"

// Delete deletes what the tenant has outside of its namespaces: CRDs with their
// objects, and what is in the root namespace. The root namespace owns all else.
func (p *Provisioner) Delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	key := vc.Status.ClusterNamespace
	crds, err := crdsOf(ctx, p.live, key)
	if err != nil {
		return false, err
	}
	as, err := p.finalizing.fenced(ctx, key)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	for i := range crds {
		if err := p.deleteCRD(ctx, as, &crds[i]); err != nil {
			return false, err
		}
	}
	if len(crds) > 0 {
		return false, nil
	}
	return p.emptyShelf(ctx, as, key)
}

// deleteCRD goes one step further in the deletion of a CRD.
func (p *Provisioner) deleteCRD(ctx context.Context, as metadata.Interface, crd *metav1.PartialObjectMetadata) error {
	crd.TypeMeta = crdType
	if crd.DeletionTimestamp.IsZero() {
		err := p.client.Delete(ctx, crd, client.Preconditions{UID: &crd.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CRD %s: %w", crd.Name, err)
		}
		return nil
	}
	if _, err := p.finalizing.remove(ctx, as, "", schema.ParseGroupResource(crd.Name)); err != nil {
		return err
	}
	before := crd.DeepCopy()
	crd.Finalizers = only(before.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	if len(crd.Finalizers) == len(before.Finalizers) {
		return nil
	}
	err := p.client.Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizers of CRD %s: %w", crd.Name, err)
	}
	return nil
}

// emptyShelf deletes the tenant's objects in the root namespace, and reports
// whether none is left.
func (p *Provisioner) emptyShelf(ctx context.Context, as metadata.Interface, clusterKey string) (empty bool, err error) {
	if as == nil {
		return true, nil
	}
	for _, resource := range shelved {
		objects := as.Resource(resource.WithVersion(shelfVersion)).Namespace(clusterKey)
		err := objects.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete %s of %s: %w", resource, clusterKey, err)
		}
	}
	left, err := p.finalizing.remove(ctx, as, clusterKey, shelved...)
	return left == 0, err
}
