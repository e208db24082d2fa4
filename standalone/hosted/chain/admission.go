package chain

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// admissions send each request to the admission of its tenant.
type admissions struct{ chain *Chain }

// Handles implements admission.Interface. The admission of a tenant decides.
func (admissions) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface.
func (a admissions) Admit(ctx context.Context, request admission.Attributes, o admission.ObjectInterfaces) error {
	of, err := a.of(ctx)
	if err != nil {
		return admission.NewForbidden(request, err)
	}
	if mutating, ok := of.(admission.MutationInterface); ok && of.Handles(request.GetOperation()) {
		return mutating.Admit(ctx, request, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (a admissions) Validate(ctx context.Context, request admission.Attributes, o admission.ObjectInterfaces) error {
	of, err := a.of(ctx)
	if err != nil {
		return admission.NewForbidden(request, err)
	}
	if validating, ok := of.(admission.ValidationInterface); ok && of.Handles(request.GetOperation()) {
		return validating.Validate(ctx, request, o)
	}
	return nil
}

func (a admissions) of(ctx context.Context) (admission.Interface, error) {
	t, err := a.chain.tenant(ctx)
	if err != nil {
		return nil, err
	}
	return t.admission.get()
}
