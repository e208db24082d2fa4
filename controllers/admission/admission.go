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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/converted"
	"github.com/virtualcluster/virtualcluster/internal/alias"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
)

// SetupWithManager adds the webhook to the server of a manager, which is ready
// when the server has started.
func SetupWithManager(mgr manager.Manager) error {
	err := builder.WebhookManagedBy(mgr, &tenancyv1alpha1.VirtualCluster{}).WithValidator(validator{live: mgr.GetAPIReader()}).Complete()
	if err != nil {
		return fmt.Errorf("add the webhook of VirtualClusters: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// validator compiles the rules of VirtualClusters, looks for their aliases, and
// rejects what their provisioner does not support.
type validator struct {
	// live reads from the apiserver: a cache lags behind.
	live client.Reader
}

// ValidateCreate rejects rules that do not compile, an alias that is taken, and
// fields that a converted tenant does not support.
func (v validator) ValidateCreate(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	return nil, v.check(ctx, vc, true)
}

// ValidateUpdate rejects what ValidateCreate does, and an alias only if it is new.
// The webhook's configuration selects the updates for which it is called.
func (v validator) ValidateUpdate(ctx context.Context, old, vc *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	if vc.DeletionTimestamp != nil {
		return nil, nil // finalizers come off whatever the rules are
	}
	return nil, v.check(ctx, vc, vc.Spec.Alias != old.Spec.Alias)
}

// ValidateDelete refuses nothing.
func (validator) ValidateDelete(context.Context, *tenancyv1alpha1.VirtualCluster) (admission.Warnings, error) {
	return nil, nil
}

func (v validator) check(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, newAlias bool) error {
	var wrong field.ErrorList
	if vc.Spec.Quota != nil {
		wrong = rules.Check(vc.Spec.Quota.Rules, field.NewPath("spec", "quota", "rules"))
	}
	if vc.Spec.Provisioner == tenancyv1alpha1.ProvisionerConverted {
		wrong = append(wrong, converted.Unsupported(&vc.Spec)...)
	}
	if newAlias && vc.Spec.Alias != "" {
		taken, err := v.isTaken(ctx, vc)
		if err != nil {
			return err
		}
		if taken {
			wrong = append(wrong, field.Duplicate(field.NewPath("spec", "alias"), vc.Spec.Alias))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: tenancyv1alpha1.GroupVersion.Group, Kind: "VirtualCluster"}
	return apierrors.NewInvalid(kind, vc.Name, wrong)
}

// isTaken reports whether another VirtualCluster has the alias. Of two that are
// created at once, the condition AliasHeld reports which one has it.
func (v validator) isTaken(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (bool, error) {
	holder, err := alias.Holder(ctx, v.live, vc.Spec.Alias)
	return holder != nil && holder.UID != vc.UID, err
}
