package integration

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var (
	clusterAPICRDs = kit.Upstream{RequiredBy: "capi", Module: "sigs.k8s.io/cluster-api", Files: "core/config/crd/bases/*.yaml"}
	// The project's controller is in a module that no proxy serves.
	certManagerCRDs  = kit.Upstream{RequiredBy: "test/operators", Module: "github.com/cert-manager/cert-manager", Files: "deploy/crds/*.yaml"}
	trustManagerCRDs = kit.Upstream{RequiredBy: "test/operators", Module: "github.com/cert-manager/trust-manager", Files: "deploy/crds/*.yaml"}
)

// clusterAPIInstalled makes a CRD what an installation of Cluster API makes of
// it.
func clusterAPIInstalled(d *apiextensionsv1.CustomResourceDefinition) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, "cert-manager.io/inject-ca-from", "capi-system/capi-serving-cert")
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: "capi-system", Name: "capi-webhook-service", Path: new("/convert"),
			}},
		},
	}
}
