package chain

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// byNeed is an admission plugin that is created with the tenant's first object
// of a resource. Without one the plugin would admit every request.
//
// The objects are counted in the store, not in an informer: a request is
// subject to the plugin as soon as the creation of the object has succeeded.
type byNeed struct {
	resource string
	count    func(ctx context.Context, tenant, resource string) (int, error)
	plugin   lazy[admission.Interface]
}

// Handles implements admission.Interface. The plugin itself decides.
func (*byNeed) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface.
func (p *byNeed) Admit(ctx context.Context, request admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.get(ctx, request.GetOperation())
	if err != nil {
		return err
	}
	if mutating, ok := plugin.(admission.MutationInterface); ok {
		return mutating.Admit(ctx, request, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *byNeed) Validate(ctx context.Context, request admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.get(ctx, request.GetOperation())
	if err != nil {
		return err
	}
	if validating, ok := plugin.(admission.ValidationInterface); ok {
		return validating.Validate(ctx, request, o)
	}
	return nil
}

// get returns the plugin if it handles an operation, and nil otherwise.
func (p *byNeed) get(ctx context.Context, operation admission.Operation) (admission.Interface, error) {
	needed, err := p.isNeeded(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("count %s: %w", p.resource, err))
	}
	if !needed {
		return nil, nil //nolint:nilnil // No plugin is a result.
	}
	plugin, err := p.plugin.get()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !plugin.Handles(operation) {
		return nil, nil //nolint:nilnil // As above.
	}
	return plugin, nil
}

// isNeeded reports whether the tenant has, or has had, an object of the
// resource.
func (p *byNeed) isNeeded(ctx context.Context) (bool, error) {
	if p.plugin.isCreated() {
		return true, nil
	}
	tenant, err := keyspace.Tenant(ctx)
	if err != nil {
		return false, err
	}
	n, err := p.count(ctx, tenant, p.resource)
	return n > 0, err
}
