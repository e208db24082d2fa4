package chain

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	apiserverinternalrest "k8s.io/kubernetes/pkg/registry/apiserverinternal/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
	svmrest "k8s.io/kubernetes/pkg/registry/storagemigration/rest"
)

// providers returns upstream's providers of API groups. Their order is that of
// discovery. It repeats StorageProviders of controlplane.CompletedConfig, except
// for the core group: upstream's provider has the allocators of one cluster,
// with clients of etcd and goroutines that never end. divideCore adds what the
// one of a generic control plane does not have.
func (c *Chain) providers(of controlplane.CompletedConfig) ([]controlplane.RESTStorageProvider, error) {
	client, err := kubernetes.NewForConfig(of.Generic.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("create a client of the apiserver: %w", err)
	}
	kinds, err := c.policyKinds()
	if err != nil {
		return nil, err
	}
	allowed := of.Generic.Authorization.Authorizer
	return []controlplane.RESTStorageProvider{
		of.NewCoreGenericConfig(),
		apiserverinternalrest.StorageProvider{},
		authenticationrest.RESTStorageProvider{
			Authenticator: of.Generic.Authentication.Authenticator, APIAudiences: of.Generic.Authentication.APIAudiences,
		},
		authorizationrest.RESTStorageProvider{Authorizer: allowed, RuleResolver: of.Generic.RuleResolver},
		autoscalingrest.RESTStorageProvider{},
		batchrest.RESTStorageProvider{},
		certificatesrest.RESTStorageProvider{Authorizer: allowed},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		networkingrest.RESTStorageProvider{},
		noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: allowed},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
		svmrest.RESTStorageProvider{},
		flowcontrolrest.RESTStorageProvider{InformerFactory: of.Generic.SharedInformerFactory},
		appsrest.StorageProvider{},
		admissionregistrationrest.RESTStorageProvider{Authorizer: allowed, DiscoveryClient: kinds},
		eventsrest.RESTStorageProvider{TTL: of.EventTTL},
		resourcerest.RESTStorageProvider{NamespaceClient: client.CoreV1().Namespaces(), Authorizer: allowed},
	}, nil
}
