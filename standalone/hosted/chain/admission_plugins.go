package chain

import (
	"fmt"
	"io"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	basecompatibility "k8s.io/component-base/compatibility"
	controlplaneadmission "k8s.io/kubernetes/pkg/controlplane/apiserver/admission"
	kubeadmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/virtualcluster/virtualcluster/internal/policyinformers"
)

// neededBy returns the resource without whose objects a plugin admits
// everything, for those plugins that cost goroutines.
func neededBy(plugin string) (resource string, ok bool) {
	resource, ok = map[string]string{
		mutatingpolicy.PluginName:    "mutatingadmissionpolicybindings",
		mutatingwebhook.PluginName:   "mutatingwebhookconfigurations",
		validatingpolicy.PluginName:  "validatingadmissionpolicybindings",
		validatingwebhook.PluginName: "validatingwebhookconfigurations",
		resourcequota.PluginName:     "resourcequotas",
	}[plugin]
	return resource, ok
}

// newAdmission returns upstream's default plugins for a tenant, and its own. It
// repeats AdmissionOptions.ApplyTo, whose post-start hook would belong to one
// cluster.
func (c *Chain) newAdmission(t *Tenant) (admission.Interface, error) {
	dynamicClient, err := dynamic.NewForConfig(t.config)
	if err != nil {
		return nil, fmt.Errorf("create a dynamic client of tenant %q: %w", t.spec.Name, err)
	}
	p := &plugins{
		chain: c, tenant: t, options: kubeoptions.NewAdmissionOptions().GenericAdmission,
		common: admission.PluginInitializers{
			initializer.NewAPIServerIDInitializer(c.generic.APIServerID),
			initializer.New(t.client, dynamicClient, t.informers, t.authorizer(), utilfeature.DefaultFeatureGate,
				compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent),
				t.done, newRESTMapper(t.client.Discovery())),
			kubeadmission.NewPluginInitializer(),
		},
	}
	built, err := p.build()
	if err != nil {
		return nil, err
	}
	handlers := []admission.Interface{built}
	for _, own := range t.spec.Admission {
		p.common.Initialize(own)
		if err := admission.ValidateInitialization(own); err != nil {
			return nil, fmt.Errorf("initialize the admission of tenant %q: %w", t.spec.Name, err)
		}
		handlers = append(handlers, own)
	}
	return admission.NewChainHandler(handlers...), nil
}

// plugins create the admission plugins of a tenant.
type plugins struct {
	chain   *Chain
	tenant  *Tenant
	options *options.AdmissionOptions
	common  admission.PluginInitializers
}

// build returns the plugins in upstream's order.
func (p *plugins) build() (admission.Interface, error) {
	enabled := slices.DeleteFunc(slices.Clone(p.options.RecommendedPluginOrder), p.options.DefaultOffPlugins.Has)
	registry := admission.NewPlugins()
	for _, name := range enabled {
		registry.Register(name, func(io.Reader) (admission.Interface, error) { return p.plugin(name) })
	}
	built, err := registry.NewFromPlugins(enabled, noConfiguration{}, admission.PluginInitializers{}, p.options.Decorators)
	if err != nil {
		return nil, fmt.Errorf("create the admission of tenant %q: %w", p.tenant.spec.Name, err)
	}
	p.tenant.informers.Start(p.tenant.done)
	return admissionmetrics.WithStepMetrics(built), nil
}

// plugin returns a plugin, or one that creates it by need.
func (p *plugins) plugin(name string) (admission.Interface, error) {
	resource, ok := neededBy(name)
	if !ok {
		return p.create(name)
	}
	lazily := &byNeed{resource: resource, count: p.chain.opts.Feed.Count}
	lazily.plugin.create = func() (admission.Interface, error) {
		created, err := p.create(name)
		if err != nil {
			return nil, err
		}
		p.tenant.informers.Start(p.tenant.done)
		return created, nil
	}
	return lazily, nil
}

// create creates and initializes a plugin.
func (p *plugins) create(name string) (admission.Interface, error) {
	own, err := p.initializers(name)
	if err != nil {
		return nil, err
	}
	return p.options.Plugins.InitPlugin(name, nil, slices.Concat(p.common, own))
}

// initializers returns the initializers of some plugins that those of all do not
// have.
func (p *plugins) initializers(name string) (admission.PluginInitializers, error) {
	switch name {
	case resourcequota.PluginName:
		configuration, err := quotainstall.NewQuotaConfigurationForAdmission(
			p.tenant.informers, p.chain.config.KubeAPIs.ControlPlane.APIResourceConfigSource)
		if err != nil {
			return nil, fmt.Errorf("configure the quota of tenant %q: %w", p.tenant.spec.Name, err)
		}
		return admission.PluginInitializers{controlplaneadmission.NewPluginInitializer(configuration, exclusion.Excluded())}, nil
	case mutatingwebhook.PluginName, validatingwebhook.PluginName:
		resolver, err := newWebhookResolver(p.tenant.informers)
		if err != nil {
			return nil, fmt.Errorf("resolve the webhooks of tenant %q: %w", p.tenant.spec.Name, err)
		}
		return admission.PluginInitializers{
			webhookinit.NewPluginInitializer(p.tenant.webhookClients(p.chain.generic.TracerProvider), resolver),
		}, nil
	}
	return admission.PluginInitializers{
		controlplaneadmission.NewPluginInitializer(nil, exclusion.Excluded()),
		policyinformers.New(p.tenant.informers),
	}, nil
}

// noConfiguration is upstream's default configuration of all plugins.
type noConfiguration struct{}

// ConfigFor implements admission.ConfigProvider.
func (noConfiguration) ConfigFor(string) (io.Reader, error) { return nil, nil } //nolint:nilnil // The interface says so.
