package kit

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// ConvertedWebhook installs the webhook that validates the objects of converted
// tenants, until the container of specs ends. It returns the options of a syncer
// that serves it.
func ConvertedWebhook(ctx context.Context, super *local.SuperCluster) func(*app.Options) {
	GinkgoHelper()
	objects, err := converted.Webhook()
	Expect(err).NotTo(HaveOccurred())
	address := FreeAddress(ctx)
	var service types.NamespacedName
	for _, object := range objects {
		switch object.GetKind() {
		case "Service":
			service = types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		case "ValidatingWebhookConfiguration":
			object, err = converted.WebhookAt(address)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(super.Client.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, object))).To(Succeed()) })
	}
	return func(o *app.Options) {
		o.QuotaValidation, o.ConvertedWebhook, o.ConvertedWebhookBindAddress = true, service, address
	}
}
