// Package admission refuses VirtualClusters with what the API server cannot
// check itself, when they are written.
package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
)

// SetupWithManager adds the webhook to the server of a manager, which is ready
// when the server has started.
func SetupWithManager(mgr manager.Manager) error {
	err := builder.WebhookManagedBy(mgr, &tenancyv1alpha1.VirtualCluster{}).WithValidator(validator{}).Complete()
	if err != nil {
		return fmt.Errorf("add the webhook of VirtualClusters: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// validator compiles the rules of VirtualClusters.
type validator struct{}

// ValidateCreate refuses rules that do not compile.
func (validator) ValidateCreate(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	return nil, check(vc)
}

// ValidateUpdate rejects rules that do not compile. The webhook's configuration
// selects the updates for which it is called.
func (validator) ValidateUpdate(_ context.Context, _, vc *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	if vc.DeletionTimestamp != nil {
		return nil, nil // finalizers come off whatever the rules are
	}
	return nil, check(vc)
}

// ValidateDelete refuses nothing.
func (validator) ValidateDelete(context.Context, *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	return nil, nil
}

func check(vc *tenancyv1alpha1.VirtualCluster) error {
	if vc.Spec.Quota == nil {
		return nil
	}
	wrong := rules.Check(vc.Spec.Quota.Rules, field.NewPath("spec", "quota", "rules"))
	if len(wrong) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: tenancyv1alpha1.GroupVersion.Group, Kind: "VirtualCluster"}
	return apierrors.NewInvalid(kind, vc.Name, wrong)
}
