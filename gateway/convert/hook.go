package convert

import (
	"cmp"
	"net/http"
	"net/url"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// patchesCRD reports whether the request patches a CRD. The gateway reads it: the
// super cluster has another conversion webhook.
func (c *call) patchesCRD() bool {
	return c.kind.IsCRD() && c.info.Verb == verbPatch && !c.applies && c.info.Subresource == ""
}

// patchCRD serves a patch of a CRD.
func (c *call) patchCRD(w http.ResponseWriter, r *http.Request, query url.Values) error {
	response, err := c.changeShelved(w, r, query)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return c.answer(w, r, response, c.converter(query))
}

// conversionClient is where a CRD says how its webhook is called.
var conversionClient = []string{"spec", "conversion", "webhook", "clientConfig"}

// hook makes the super cluster call the gateway instead of the conversion webhook
// of a CRD.
func (c *call) hook(crd document.Object) error {
	found, ok, _ := unstructured.NestedFieldNoCopy(crd, conversionClient...)
	if !ok || found == nil {
		return nil
	}
	name := cmp.Or(nameOf(crd), c.name)
	before := c.clientBefore()
	if before == nil && !c.AllowsConversionWebhooks {
		return apierrors.NewForbidden(c.kind.GroupResource(), name, errNoWebhook)
	}
	at := field.NewPath(conversionClient[0], conversionClient[1:]...)
	config, err := c.readClient(found)
	if err != nil {
		return c.invalidField(field.TypeInvalid(at, found, err.Error()))
	}
	if wrong := c.checkClient(at, config); len(wrong) > 0 {
		return c.invalidField(wrong...)
	}
	hook, err := c.Conversion.Hook(c.Tenant, name)
	if err != nil {
		return err
	}
	super, err := hook.Of(config)
	if err != nil {
		return c.invalidField(field.Invalid(at, "", err.Error()))
	}
	if c.applies && before != nil && len(config.CABundle) == 0 && len(document.Unhook(*before).CABundle) > 0 {
		super.CABundle = nil // the manager that has set it keeps it
	}
	parent, _, _ := unstructured.NestedFieldNoCopy(crd, conversionClient[:3]...)
	parent.(document.Object)[conversionClient[3]] = document.Hooked{ClientConfig: super} // has the field
	return nil
}

// readClient reads the configuration, with the default of a cluster.
func (c *call) readClient(found any) (config document.ClientConfig, err error) {
	object, ok := found.(document.Object)
	if !ok {
		return config, errClient
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &config); err != nil {
		return config, err
	}
	if config.Service != nil && config.Service.Port == nil {
		config.Service.Port = new(int32(443))
	}
	return config, nil
}

// checkClient validates the configuration, as a cluster does. What is applied may
// have a part of it.
func (c *call) checkClient(at *field.Path, config document.ClientConfig) (wrong field.ErrorList) {
	switch {
	case config.URL != nil && config.Service != nil, config.URL == nil && config.Service == nil && !c.applies:
		wrong = append(wrong, field.Required(at, "exactly one of url or service is required"))
	case config.URL != nil:
		wrong = webhook.ValidateWebhookURL(at.Child("url"), *config.URL, true)
	case config.Service != nil:
		s := config.Service
		wrong = webhook.ValidateWebhookService(at.Child("service"), s.Namespace, s.Name, s.Path, *s.Port)
	}
	if len(config.CABundle) > 0 {
		wrong = append(wrong, webhook.ValidateCABundle(at.Child("caBundle"), config.CABundle)...)
	}
	return wrong
}

// clientBefore returns how the super cluster calls the conversion webhook of the CRD
// of the request; nil if it has none.
func (c *call) clientBefore() *document.ClientConfig {
	crd, ok := c.CRDs.Find(c.Tenant, schema.ParseGroupResource(c.name))
	if !ok {
		return nil
	}
	return conversion.ClientOf(crd)
}

func (c *call) invalidField(wrong ...*field.Error) error {
	return apierrors.NewInvalid(apiextensionsv1.Kind(c.kind.Kind), c.name, wrong)
}
