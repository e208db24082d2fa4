package app

import (
	"context"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert"
	"github.com/virtualcluster/virtualcluster/gateway/convert/admission"
	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	"github.com/virtualcluster/virtualcluster/gateway/convert/typecheck"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// tenantAdmission evaluates the webhooks and policies of converted tenants.
type tenantAdmission struct {
	super        kubernetes.Interface
	reader       client.Reader
	index        *admission.Index
	tenants      *admission.Tenants
	registration *admission.Registration
	keeper       *admission.Keeper
	handler      *admission.Handler
	network      *network
	// types checks those of expressions of policies.
	types *typecheck.Controller
	// conversions calls the conversion webhooks of CRDs.
	conversions *conversion.Tenants

	mu sync.Mutex
	// access is how the super cluster reaches the gateway, and keys are those of the
	// tenants, which VirtualClusters that are gone do not have.
	access map[string]gatewayaccess.Access
	keys   map[types.NamespacedName]string
	itself *requester.Account
}

func newTenantAdmission(
	super *rest.Config, mgr manager.Manager, namespaces *index.Index, options Options,
) (*tenantAdmission, error) {
	clients, err := kubernetes.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("make a client of the super cluster: %w", err)
	}
	network, err := newNetwork(clients, options)
	if err != nil {
		return nil, err
	}
	a := &tenantAdmission{
		super: clients, reader: mgr.GetClient(), index: admission.NewIndex(), tenants: admission.NewTenants(),
		registration: &admission.Registration{Super: clients}, network: network, conversions: conversion.NewTenants(),
		access: map[string]gatewayaccess.Access{}, keys: map[types.NamespacedName]string{},
	}
	log := mgr.GetLogger().WithName("admission")
	a.keeper = &admission.Keeper{
		Index: a.index, Tenants: a.tenants, Namespaces: mgr.GetCache(), Super: mgr.GetClient(), Register: a.register, Log: log,
	}
	a.keeper.Init()
	a.index.Changed = a.keeper.Changed
	a.types = typecheck.New(a.tenants.API, log)
	a.handler = &admission.Handler{
		Tenants: a.tenants, Index: a.index, Namespaces: namespaces, Accepts: a.registration.Accepts, IsGone: a.isGone,
		IsGateway: a.isItself,
	}
	return a, nil
}

// followed are the objects in the super cluster that say which tenants have
// webhooks and policies, and in which namespaces.
func (a *tenantAdmission) followed() []followed {
	all := []followed{{&corev1.Namespace{}, a.keeper.Handler()}}
	for _, kind := range kinds.All() {
		if !kind.IsAdmission() {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kinds.Shelf.WithKind(kind.Kind))
		all = append(all, followed{object, a.index.Handler(kind.Kind)})
		if kind.Kind == "ValidatingAdmissionPolicy" {
			all = append(all, followed{object, a.types.Handler(naming.Unshelved)})
		}
	}
	return all
}

// set adds a tenant.
func (a *tenantAdmission) set(vc *tenancyv1alpha1.VirtualCluster, access gatewayaccess.Access, handler *convert.Handler) {
	key := vc.Status.ClusterNamespace
	a.mu.Lock()
	a.access[key], a.keys[client.ObjectKeyFromObject(vc)] = access, key
	a.mu.Unlock()
	a.tenants.Set(admission.Tenant{
		Namer: naming.Namer{Key: key, Namespaces: handler.Namespaces}, CRDs: handler.CRDs, API: handler, Authorize: handler.Authorize,
		Network: a.network.of(key), Convert: a.conversions.Convert,
	})
	if _, has := a.index.Has(key); has {
		a.keeper.Changed(key)
	}
	a.types.Served(key)
}

// remove removes the tenant of a VirtualCluster, and returns its key; an empty one
// if it was none.
func (a *tenantAdmission) remove(of types.NamespacedName) string {
	a.mu.Lock()
	key := a.keys[of]
	delete(a.keys, of)
	delete(a.access, key)
	a.mu.Unlock()
	if key != "" {
		a.tenants.Remove(key)
	}
	return key
}

// accessOf returns the access of a tenant; false for one that is not served.
func (a *tenantAdmission) accessOf(key string) (gatewayaccess.Access, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	access, served := a.access[key]
	return access, served
}

// register makes the super cluster call the gateway.
func (a *tenantAdmission) register(ctx context.Context, key string) error {
	access, served := a.accessOf(key)
	if !served {
		return nil // it is not served: when it is, this is called again
	}
	return a.registration.Ensure(ctx, access.Server, access.CA)
}

// isGone reports whether a tenant is being deleted, or has been.
func (a *tenantAdmission) isGone(ctx context.Context, key string) bool {
	var all tenancyv1alpha1.VirtualClusterList
	if err := a.reader.List(ctx, &all); err != nil {
		return false
	}
	for i := range all.Items {
		if all.Items[i].Status.ClusterNamespace == key {
			return !all.Items[i].DeletionTimestamp.IsZero()
		}
	}
	return true
}

// account returns the user that the gateway is in the super cluster.
func (a *tenantAdmission) account(ctx context.Context) (requester.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.itself != nil {
		return *a.itself, nil
	}
	review, err := a.super.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return requester.Account{}, fmt.Errorf("ask the super cluster who the gateway is: %w", err)
	}
	a.itself = new(accountOf(review.Status.UserInfo))
	return *a.itself, nil
}

// accountOf returns a user without the groups that impersonation adds.
func accountOf(info authenticationv1.UserInfo) requester.Account {
	account := requester.Account{Name: info.Username}
	if _, _, err := serviceaccount.SplitUsername(info.Username); err == nil {
		return account
	}
	for _, group := range info.Groups {
		if group != user.AllAuthenticated {
			account.Groups = append(account.Groups, group)
		}
	}
	return account
}

// isItself reports whether a user of the super cluster is the gateway.
func (a *tenantAdmission) isItself(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.itself != nil && a.itself.Name == name
}
