package chain

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// serviceRegistry writes each Service by the registry of its tenant. Reads need
// no allocators, so they use the shared one. It does not embed the shared one:
// a method that writes must not be missed.
type serviceRegistry struct {
	shared *servicestore.REST
	chain  *Chain
}

var (
	_ rest.StandardStorage        = serviceRegistry{}
	_ rest.Scoper                 = serviceRegistry{}
	_ rest.ShortNamesProvider     = serviceRegistry{}
	_ rest.CategoriesProvider     = serviceRegistry{}
	_ rest.SingularNameProvider   = serviceRegistry{}
	_ rest.StorageVersionProvider = serviceRegistry{}
	_ rest.ResetFieldsStrategy    = serviceRegistry{}

	_ rest.MayReturnFullObjectDeleter = serviceRegistry{}
)

func (c *Chain) servicesOf(ctx context.Context) (own *services, release func(), err error) {
	t, err := c.tenant(ctx)
	if err != nil {
		return nil, nil, err
	}
	if own, release, err = t.services.use(); err != nil {
		return nil, nil, notRepaired(err)
	}
	return own, release, nil
}

// notRepaired is the answer to a write that could not allocate, which clients
// repeat by themselves.
func notRepaired(err error) error {
	answer := apierrors.NewServiceUnavailable(err.Error())
	answer.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return answer
}

// Create implements the interface of upstream for creations.
func (r serviceRegistry) Create(
	ctx context.Context, service runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	own, release, err := r.chain.servicesOf(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return own.registry.Create(ctx, service, validate, options)
}

// Update implements rest.Updater.
func (r serviceRegistry) Update(
	ctx context.Context, name string, updated rest.UpdatedObjectInfo, validate rest.ValidateObjectFunc,
	validateUpdate rest.ValidateObjectUpdateFunc, mayCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	own, release, err := r.chain.servicesOf(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()
	return own.registry.Update(ctx, name, updated, validate, validateUpdate, mayCreate, options)
}

// Delete implements rest.GracefulDeleter.
func (r serviceRegistry) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	own, release, err := r.chain.servicesOf(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()
	return own.registry.Delete(ctx, name, validate, options)
}

// DeleteCollection implements rest.CollectionDeleter.
func (r serviceRegistry) DeleteCollection(
	ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, selected *internalversion.ListOptions,
) (runtime.Object, error) {
	own, release, err := r.chain.servicesOf(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return own.registry.DeleteCollection(ctx, validate, options, selected)
}

// Get implements rest.Getter.
func (r serviceRegistry) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.shared.Get(ctx, name, options)
}

// List implements rest.Lister.
func (r serviceRegistry) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	return r.shared.List(ctx, options)
}

// Watch implements rest.Watcher.
func (r serviceRegistry) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	return r.shared.Watch(ctx, options)
}

// ConvertToTable implements rest.TableConvertor.
func (r serviceRegistry) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.shared.ConvertToTable(ctx, object, options)
}

// New implements rest.Storage.
func (r serviceRegistry) New() runtime.Object { return r.shared.New() }

// NewList implements rest.Lister.
func (r serviceRegistry) NewList() runtime.Object { return r.shared.NewList() }

// Destroy implements rest.Storage. Tenants end their own registries.
func (serviceRegistry) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r serviceRegistry) NamespaceScoped() bool { return r.shared.NamespaceScoped() }

// ShortNames implements rest.ShortNamesProvider.
func (r serviceRegistry) ShortNames() []string { return r.shared.ShortNames() }

// Categories implements rest.CategoriesProvider.
func (r serviceRegistry) Categories() []string { return r.shared.Categories() }

// GetSingularName implements rest.SingularNameProvider.
func (r serviceRegistry) GetSingularName() string { return r.shared.GetSingularName() }

// StorageVersion implements rest.StorageVersionProvider.
func (r serviceRegistry) StorageVersion() runtime.GroupVersioner { return r.shared.StorageVersion() }

// GetResetFields implements rest.ResetFieldsStrategy.
func (r serviceRegistry) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.shared.GetResetFields()
}

// DeleteReturnsDeletedObject implements rest.MayReturnFullObjectDeleter.
func (r serviceRegistry) DeleteReturnsDeletedObject() bool {
	return r.shared.DeleteReturnsDeletedObject()
}

// serviceStatus writes the status of each Service by the registry of its
// tenant: the removal of the last finalizer deletes the Service.
type serviceStatus struct {
	*servicestore.StatusREST

	chain *Chain
}

// Update implements rest.Updater.
func (s serviceStatus) Update(
	ctx context.Context, name string, updated rest.UpdatedObjectInfo, validate rest.ValidateObjectFunc,
	validateUpdate rest.ValidateObjectUpdateFunc, mayCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	own, release, err := s.chain.servicesOf(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()
	return own.status.Update(ctx, name, updated, validate, validateUpdate, mayCreate, options)
}
