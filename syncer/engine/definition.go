package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

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

// define makes sure that the tenant has the definition of a custom resource, and says what the kind depends on. That is the
// super cluster's to say: by its paths the copies are written.
func (s *engagement) define(ctx context.Context, of tenancyv1alpha1.CustomResourceSync) (kinds.CustomResource, error) {
	super, err := s.engine.custom.definitions.get(ctx, s.API.GetAPIReader(), of.Resource+"."+of.Group, s.engine.interval/2)
	if err != nil {
		return kinds.CustomResource{}, fmt.Errorf("the super cluster's definition: %w", err)
	}
	r, err := customResource(super, of)
	if err != nil {
		return r, err
	}
	if err := checkScope(r); err != nil {
		return r, err
	}
	tenant, err := s.copyDefinition(ctx, super, of.Version)
	if err != nil {
		return r, fmt.Errorf("the tenant's definition: %w", err)
	}
	switch own, err := customResource(tenant, of); {
	case err != nil:
		return r, fmt.Errorf("the tenant's own definition: %w", err)
	case own != r:
		return r, errOtherDefinition
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	s.Cluster.Learn(&meta.RESTMapping{
		GroupVersionKind: r.GVK, Resource: r.GVK.GroupVersion().WithResource(of.Resource), Scope: scope,
	})
	return r, nil
}

// customResource is what a definition says of a custom resource.
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

// checkScope returns what keeps a custom resource from flowing.
func checkScope(r kinds.CustomResource) error {
	if !r.Namespaced && r.Direction == tenancyv1alpha1.SyncDown {
		return errors.New("a resource without namespaces can only flow up, since tenants would meet in its names")
	}
	return nil
}

// definitions are the super cluster's, each read once in a while for all tenants together.
type definitions struct {
	mu    sync.Mutex
	known map[string]definition
}

// definition is a definition of the super cluster, and when it was read.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	at time.Time
}

// get returns the definition of that name, as old as maxAge at most. It is shared: nobody changes it.
func (d *definitions) get(
	ctx context.Context, from client.Reader, name string, maxAge time.Duration,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known[name]; ok && time.Since(known.at) <= maxAge {
		return known.CustomResourceDefinition, nil
	}
	found := definition{&apiextensionsv1.CustomResourceDefinition{}, time.Now()}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, found.CustomResourceDefinition); err != nil {
		return nil, err
	}
	if d.known == nil {
		d.known = map[string]definition{}
	}
	d.known[name] = found
	return found.CustomResourceDefinition, nil
}

// copyDefinition brings a definition of the super cluster to the tenant, and returns the tenant's when it can be used. One that
// the tenant made by itself is left alone.
func (s *engagement) copyDefinition(
	ctx context.Context, super *apiextensionsv1.CustomResourceDefinition, version string,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	desired, err := tenantDefinition(super, version)
	if err != nil {
		return nil, err
	}
	found := &apiextensionsv1.CustomResourceDefinition{}
	switch err := s.Client.Get(ctx, client.ObjectKeyFromObject(super), found); {
	case apierrors.IsNotFound(err):
		if err := s.Client.Create(ctx, desired); err != nil {
			return nil, err
		}
		found = desired
	case err != nil:
		return nil, err
	case session.FromSuper(found):
		if err := s.updateDefinition(ctx, found, desired); err != nil {
			return nil, err
		}
	}
	if !established(found) {
		return nil, fmt.Errorf("the tenant's apiserver does not serve %s yet", found.Name)
	}
	return found, nil
}

// updateDefinition gives the tenant's copy of a definition what the super cluster's says where it differs.
func (s *engagement) updateDefinition(ctx context.Context, found, desired *apiextensionsv1.CustomResourceDefinition) error {
	merged := found.DeepCopy()
	merged.Spec = desired.Spec
	merged.SetLabels(session.Mark(merged.GetLabels()))
	merged.SetAnnotations(session.Mark(merged.GetAnnotations()))
	maps.Copy(merged.Annotations, desired.Annotations)
	if equality.Semantic.DeepEqual(merged, found) {
		return nil
	}
	if err := s.Client.Patch(ctx, merged, guard.SameObject(found, client.MergeFrom(found))); err != nil {
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
	annotations := session.Mark(nil)
	// Without it, an apiserver does not take a definition in a group of Kubernetes' own.
	if approved, ok := super.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		annotations[apiextensionsv1.KubeAPIApprovedAnnotation] = approved
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: session.Mark(nil), Annotations: annotations},
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
