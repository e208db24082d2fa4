package admission

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
	"github.com/virtualcluster/virtualcluster/internal/policyinformers"
)

// engine evaluates the webhooks and policies of one tenant. All that it reads, it
// reads by the tenant's own API, as the tenant's cluster itself.
type engine struct {
	view       view
	mutating   []admission.MutationInterface
	validating []admission.ValidationInterface
	stop       context.CancelFunc
	turns      webhooks.Turns
}

// newEngine starts an engine. It is ready when its informers are, for which the
// first requests wait.
func newEngine(tenant Tenant, api http.Handler) (*engine, error) {
	config := webhooks.Itself(api)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of a tenant: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of a tenant: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &engine{view: view{Tenant: tenant}, stop: stop, turns: webhooks.NewTurns()}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(cache.TransformFunc(trim)))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	initializers := admission.PluginInitializers{
		initializer.New(client, objects, factory, tenant.Authorize, feature.DefaultFeatureGate,
			compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), mapper),
		webhookinit.NewPluginInitializer(webhooks.Clients(tenant.Network), webhooks.Services{Tenant: client}),
	}
	if err := e.addPlugins(initializers, factory); err != nil {
		stop()
		return nil, err
	}
	factory.Start(ctx.Done())
	return e, nil
}

// addPlugins adds the plugins in the order of an apiserver.
func (e *engine) addPlugins(initializers admission.PluginInitializers, factory informers.SharedInformerFactory) error {
	for _, newPlugin := range []func() (admission.Interface, error){
		func() (admission.Interface, error) { return mutatingpolicy.NewPlugin(nil) },
		func() (admission.Interface, error) { return mutatingwebhook.NewMutatingWebhook(nil) },
		func() (admission.Interface, error) { return validatingpolicy.NewPlugin(nil) },
		func() (admission.Interface, error) { return validatingwebhook.NewValidatingAdmissionWebhook(nil) },
	} {
		plugin, err := newPlugin()
		if err == nil {
			initializers.Initialize(plugin)
			policyinformers.New(factory).Initialize(plugin)
			err = admission.ValidateInitialization(plugin)
		}
		if err != nil {
			return fmt.Errorf("start the admission of a tenant: %w", err)
		}
		if mutating, ok := plugin.(admission.MutationInterface); ok {
			e.mutating = append(e.mutating, mutating)
		}
		if validating, ok := plugin.(admission.ValidationInterface); ok {
			e.validating = append(e.validating, validating)
		}
	}
	return nil
}

// admit mutates, a second time where a plugin asks for it.
func (e *engine) admit(ctx context.Context, attributes admission.Attributes) error {
	if err := e.admitOnce(ctx, attributes); err != nil {
		return err
	}
	again := attributes.GetReinvocationContext()
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()
	return e.admitOnce(ctx, attributes)
}

func (e *engine) admitOnce(ctx context.Context, attributes admission.Attributes) error {
	interfaces := e.view.interfaces(ctx, attributes.GetResource().GroupResource())
	for _, plugin := range e.mutating {
		if !plugin.Handles(attributes.GetOperation()) {
			continue
		}
		if err := plugin.Admit(ctx, attributes, interfaces); err != nil {
			return err
		}
	}
	return nil
}

// validate validates.
func (e *engine) validate(ctx context.Context, attributes admission.Attributes) error {
	interfaces := e.view.interfaces(ctx, attributes.GetResource().GroupResource())
	for _, plugin := range e.validating {
		if !plugin.Handles(attributes.GetOperation()) {
			continue
		}
		if err := plugin.Validate(ctx, attributes, interfaces); err != nil {
			return err
		}
	}
	return nil
}
