package app

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/quota"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// addValidation adds the gate of the validators to the manager, and the
// condition that reports whether they enforce quotas.
func addValidation(
	mgr manager.Manager, table []*kinds.Kind, hook *convertedWebhook, opts Options, metrics *validation.Metrics,
) (*validation.Gate, error) {
	gate, err := newGate(mgr, table, hook, opts, metrics)
	if err != nil {
		return nil, err
	}
	if hook != nil {
		if err := hook.serve(mgr, gate); err != nil {
			return nil, err
		}
	}
	return gate, addQuotaReporter(mgr, gate, hook != nil)
}

// newGate returns the gate of the selected validators, and adds their runnables
// to the manager; nil if validation is disabled.
func newGate(
	mgr manager.Manager, table []*kinds.Kind, hook *convertedWebhook, opts Options, metrics *validation.Metrics,
) (*validation.Gate, error) {
	if !opts.QuotaValidation {
		return nil, nil
	}
	chosen, err := chosenPlugins(opts, hook.limits(table, opts))
	if err != nil {
		return nil, err
	}
	objects, reader, err := hook.view(mgr)
	if err != nil {
		return nil, err
	}
	gate, err := validation.New(mgr.GetScheme(), chosen, plugins.Environment{
		Cache:      objects,
		Client:     reader,
		Kinds:      validated(table),
		Logger:     mgr.GetLogger().WithName("validation"),
		Registerer: opts.Registerer,
	}, validation.Options{
		Timeout:  opts.QuotaValidationTimeout,
		FailOpen: opts.QuotaValidationFailOpen,
		Serves:   hook.serves,
		Metrics:  metrics,
	})
	if err != nil {
		return nil, err
	}
	for _, v := range gate.Validators() {
		runnable, works := v.(manager.Runnable)
		if !works {
			continue
		}
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("add the runnable of validator %s: %w", v.Name(), err)
		}
	}
	return gate, nil
}

// chosenPlugins returns the selected plugins, both built-in and of this program,
// and those that always work, which get the usage of tenants.
func chosenPlugins(opts Options, always func(quota rules.Usage) []plugins.Registration) ([]plugins.Registration, error) {
	registry := &plugins.Registry{}
	limits := quota.New()
	builtin := []plugins.Registration{limits.Registration(), rules.Registration(limits.Usage, opts.QuotaRules)}
	for _, registration := range append(builtin, opts.Plugins...) {
		if err := registry.Register(registration); err != nil {
			return nil, err
		}
	}
	chosen, err := registry.Chosen(opts.QuotaValidators...)
	if err != nil {
		return nil, fmt.Errorf("--quota-validators: %w", err)
	}
	return append(chosen, always(limits.Usage)...), nil
}
