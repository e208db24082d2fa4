package admission

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/internal/servingcert"
)

// ConfigurationName is the name of the ValidatingWebhookConfiguration in
// config/webhook.
const ConfigurationName = "vc-manager"

// NewRegistration returns the registration in the cluster of a manager.
func NewRegistration(mgr manager.Manager) servingcert.Registration {
	return servingcert.NewRegistration(mgr, ConfigurationName)
}
