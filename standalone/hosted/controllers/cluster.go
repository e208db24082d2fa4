package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	sacontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/generated/openapi"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

const (
	quotaResync      = 5 * time.Minute
	defaultDiscovery = 30 * time.Second // of upstream
)

// clusterControllers returns the controllers of every cluster: service
// accounts, namespaces, garbage collection, quota, aggregation of roles, status
// of policies.
func clusterControllers() []Controller {
	return []Controller{
		{"serviceaccount-token-controller", buildTokens},
		{"serviceaccount-controller", buildServiceAccounts},
		{"root-ca-certificate-publisher-controller", buildRootCAPublisher},
		{"namespace-controller", buildNamespaces},
		{"garbage-collector-controller", buildGarbageCollector},
		{"resourcequota-controller", buildQuota},
		{"clusterrole-aggregation-controller", buildRoleAggregation},
		{"validatingadmissionpolicy-status-controller", buildPolicyStatus},
	}
}

func buildTokens(ctx context.Context, env *Environment) (func(context.Context), error) {
	key, err := keyutil.ParsePrivateKeyPEM(env.cluster.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("read the service account key: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	core := env.typed.Core().V1()
	c, err := sacontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), env.client,
		sacontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: env.cluster.Authority.CertPEM})
	return workers(2, c), err
}

func buildServiceAccounts(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := sacontroller.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		env.client, sacontroller.DefaultServiceAccountsControllerOptions())
	return workers(1, c), err
}

func buildRootCAPublisher(_ context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), env.client, env.cluster.Authority.CertPEM)
	return workers(1, c), err
}

func buildGarbageCollector(ctx context.Context, env *Environment) (func(context.Context), error) {
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, env.metadata, env.restMapper,
		garbagecollector.DefaultIgnoredResources(), env.graph, env.started)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, env.client, env.metadata, env.restMapper, graph)
	return func(ctx context.Context) {
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { gc.Sync(ctx, env.discovery, env.cluster.Discovery) })
		gc.Run(ctx, 5, env.cluster.Discovery)
	}, err
}

func buildQuota(ctx context.Context, env *Environment) (func(context.Context), error) {
	discover := env.discovery.ServerPreferredNamespacedResources
	quota, err := quotainstall.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(env.typed.ForResource), env.typed)
	if err != nil {
		return nil, err
	}
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               env.client.CoreV1(),
		ResourceQuotaInformer:     env.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(quotaResync),
		Registry:                  generic.NewRegistry(quota.Evaluators()),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      quota.IgnoredResources,
		InformersStarted:          env.started,
		InformerFactory:           env.informers,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	return func(ctx context.Context) {
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { c.Sync(ctx, discover, env.cluster.Discovery) })
		c.Run(ctx, 2)
	}, err
}

func buildRoleAggregation(_ context.Context, env *Environment) (func(context.Context), error) {
	c := clusterroleaggregation.NewClusterRoleAggregation(env.typed.Rbac().V1().ClusterRoles(), env.client.RbacV1())
	return workers(1, c), nil
}

// buildPolicyStatus builds the controller that warns of wrong types in the
// expressions of policies. The schemas take some megabytes, until it ends.
func buildPolicyStatus(_ context.Context, env *Environment) (func(context.Context), error) {
	schemas := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, scheme.Scheme, apiextensionsscheme.Scheme).
		Combine(&resolver.ClientDiscoveryResolver{Discovery: env.client.Discovery()})
	c, err := validatingadmissionpolicystatus.NewController(
		env.typed.Admissionregistration().V1().ValidatingAdmissionPolicies(),
		env.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		&validating.TypeChecker{SchemaResolver: schemas, RestMapper: env.restMapper})
	return workers(5, c), err
}
