package engine

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// copyDefinition brings the definition of a custom resource from the super cluster to the tenant, and returns the tenant's
// when it can be used. A definition that the tenant made by itself is left alone, and used if it has the version.
func (s *session) copyDefinition(
	ctx context.Context, sync tenancyv1alpha1.CustomResourceSync,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	key := client.ObjectKey{Name: sync.Resource + "." + sync.Group}
	super := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.super.GetAPIReader().Get(ctx, key, super); err != nil {
		return nil, fmt.Errorf("the super cluster's definition: %w", err)
	}
	desired, err := tenantDefinition(super, sync.Version)
	if err != nil {
		return nil, err
	}
	found := &apiextensionsv1.CustomResourceDefinition{}
	switch err := s.client.Get(ctx, key, found); {
	case apierrors.IsNotFound(err):
		err = s.client.Create(ctx, desired)
		found = desired
		if err != nil {
			return nil, fmt.Errorf("the tenant's definition: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("the tenant's definition: %w", err)
	case found.Labels[names.FromSuper] != "":
		if err := s.updateDefinition(ctx, found, desired); err != nil {
			return nil, fmt.Errorf("the tenant's definition: %w", err)
		}
	}
	if !established(found) {
		return nil, fmt.Errorf("the tenant's apiserver does not serve %s yet", key.Name)
	}
	return found, nil
}

// updateDefinition gives the tenant's copy of a definition the super cluster's spec where it differs.
func (s *session) updateDefinition(ctx context.Context, found, desired *apiextensionsv1.CustomResourceDefinition) error {
	merged := found.DeepCopy()
	merged.Spec = desired.Spec
	if equality.Semantic.DeepEqual(merged.Spec, found.Spec) {
		return nil
	}
	if err := s.client.Patch(ctx, merged, sameObject(found, client.MergeFrom(found))); err != nil {
		return err
	}
	*found = *merged
	return nil
}

// tenantDefinition is the definition that a tenant gets: the one version that is carried, without the webhook by which the super
// cluster converts others.
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
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: map[string]string{names.FromSuper: "true"}},
		Spec:       *spec,
	}, nil
}

// versionOf is a version that a definition serves.
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

// established says whether an apiserver serves what a definition defines.
func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
