package custom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// customResource returns what a definition declares of a custom resource.
func customResource(
	definition *apiextensionsv1.CustomResourceDefinition, of tenancyv1alpha1.CustomResourceSync,
) (kinds.CustomResource, error) {
	version, err := versionOf(definition, of.Version)
	if err != nil {
		return kinds.CustomResource{}, err
	}
	return kinds.CustomResource{
		GVK:        schema.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: definition.Spec.Names.Kind},
		Direction:  of.Direction,
		Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Status:     version.Subresources != nil && version.Subresources.Status != nil,
	}, nil
}

// checkScope rejects a custom resource that cannot be synced.
func checkScope(r kinds.CustomResource) error {
	if !r.Namespaced && r.Direction == tenancyv1alpha1.SyncDown {
		return errors.New("a cluster-scoped resource can only be synced up, since names of tenants could collide")
	}
	return nil
}

// ensureDefinition ensures that a tenant has a copy of a definition of the
// super cluster, and returns the tenant's definition when its apiserver serves
// it. A definition that the tenant created is left unchanged.
func ensureDefinition(
	ctx context.Context, tenant client.Client, super *apiextensionsv1.CustomResourceDefinition, version string,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	desired, err := tenantDefinition(super, version)
	if err != nil {
		return nil, err
	}
	found := &apiextensionsv1.CustomResourceDefinition{}
	switch err := tenant.Get(ctx, client.ObjectKeyFromObject(super), found); {
	case apierrors.IsNotFound(err):
		if err := tenant.Create(ctx, desired); err != nil {
			return nil, err
		}
		found = desired
	case err != nil:
		return nil, err
	case session.FromSuper(found):
		if err := updateDefinition(ctx, tenant, found, desired); err != nil {
			return nil, err
		}
	}
	if !established(found) {
		return nil, fmt.Errorf("the tenant's apiserver does not serve %s yet", found.Name)
	}
	return found, nil
}

// updateDefinition updates the tenant's copy of a definition where it differs.
func updateDefinition(ctx context.Context, tenant client.Client, found, desired *apiextensionsv1.CustomResourceDefinition) error {
	merged := found.DeepCopy()
	merged.Spec = desired.Spec
	merged.SetLabels(session.Mark(merged.GetLabels()))
	merged.SetAnnotations(session.Mark(merged.GetAnnotations()))
	maps.Copy(merged.Annotations, desired.Annotations)
	if equality.Semantic.DeepEqual(merged, found) {
		return nil
	}
	if err := tenant.Patch(ctx, merged, guard.SameObject(found, client.MergeFrom(found))); err != nil {
		return err
	}
	*found = *merged
	return nil
}

// tenantDefinition returns the definition that a tenant gets: with the one
// version that is synced, and without the super cluster's conversion webhook.
func tenantDefinition(
	super *apiextensionsv1.CustomResourceDefinition, version string,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	v, err := versionOf(super, version)
	if err != nil {
		return nil, err
	}
	own := *v.DeepCopy()
	own.Storage, own.Deprecated, own.DeprecationWarning = true, false, nil
	spec := super.Spec.DeepCopy()
	spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{own}
	spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	annotations := session.Mark(nil)
	// Without it, an apiserver rejects a definition in a group of Kubernetes.
	if approved, ok := super.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		annotations[apiextensionsv1.KubeAPIApprovedAnnotation] = approved
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: session.Mark(nil), Annotations: annotations},
		Spec:       *spec,
	}, nil
}

// versionOf returns a version that a definition serves.
func versionOf(
	definition *apiextensionsv1.CustomResourceDefinition, name string,
) (*apiextensionsv1.CustomResourceDefinitionVersion, error) {
	i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name && v.Served
	})
	if i < 0 {
		return nil, fmt.Errorf("%s does not serve version %s", definition.Name, name)
	}
	return &definition.Spec.Versions[i], nil
}

// established reports whether an apiserver serves the resource of a definition.
func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established)
}
