package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// upstream are CRDs of another project, as its module has them.
type upstream struct {
	// requiredBy is the folder of the module of this repository that requires it.
	requiredBy, module, files string
}

var (
	clusterAPICRDs = upstream{"capi", "sigs.k8s.io/cluster-api", "core/config/crd/bases/*.yaml"}
	// The project's controller is in a module that no proxy serves.
	certManagerCRDs  = upstream{"test/operators", "github.com/cert-manager/cert-manager", "deploy/crds/*.yaml"}
	trustManagerCRDs = upstream{"test/operators", "github.com/cert-manager/trust-manager", "deploy/crds/*.yaml"}
)

// definitions reads the CRDs.
func (u upstream) definitions(ctx context.Context, change ...definitionChange) []*apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", u.module)
	download.Dir = filepath.Join("..", "..", u.requiredBy)
	var module struct {
		Dir string `json:"Dir"` //nolint:tagliatelle // as the go command writes it
	}
	Expect(json.Unmarshal(must(download.Output()), &module)).To(Succeed())
	files := must(filepath.Glob(filepath.Join(module.Dir, u.files)))
	Expect(files).NotTo(BeEmpty())
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		d := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(must(os.ReadFile(file)), d)).To(Succeed())
		for _, f := range change {
			f(d)
		}
		all = append(all, d)
	}
	return all
}

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
