package custom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// errOtherDefinition is why a tenant's own definition cannot be used.
var errOtherDefinition = errors.New("the tenant has a definition of its own, of another kind or scope, or with another status, than " +
	"the super cluster's; it has to go, or to be like that")

// define ensures that the tenant has the definition of the custom resource, and
// returns what its kind depends on. The super cluster's definition decides,
// since the copies are written by its paths.
func (s *Syncer) define(ctx context.Context) (kinds.CustomResource, error) {
	super, err := s.resources.definition(ctx, s.name())
	if err != nil {
		return kinds.CustomResource{}, fmt.Errorf("the super cluster's definition: %w", err)
	}
	r, err := customResource(super, s.of)
	if err != nil {
		return r, err
	}
	if err := checkScope(r); err != nil {
		return r, err
	}
	tenant, err := ensureDefinition(ctx, s.cluster.GetClient(), super, s.of.Version)
	if err != nil {
		return r, fmt.Errorf("the tenant's definition: %w", err)
	}
	switch own, err := customResource(tenant, s.of); {
	case err != nil:
		return r, fmt.Errorf("the tenant's own definition: %w", err)
	case own != r:
		return r, errOtherDefinition
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	s.cluster.Learn(&meta.RESTMapping{
		GroupVersionKind: r.GVK, Resource: r.GVK.GroupVersion().WithResource(s.of.Resource), Scope: scope,
	})
	return r, nil
}

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
		return errors.New("a resource without namespaces can only flow up, since tenants would meet in its names")
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
	return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
