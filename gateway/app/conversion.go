package app

import (
	"context"
	"fmt"

	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/gateway/convert"
	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// tenantConversion calls the conversion webhooks of converted tenants.
type tenantConversion struct {
	tenants *conversion.Tenants
	keeper  *conversion.Keeper
	handler *conversion.Handler
	network *network
	crds    *resources.Index
}

func newTenantConversion(
	super *rest.Config, mgr manager.Manager, crds *resources.Index, of *tenantAdmission,
) (*tenantConversion, error) {
	clients, err := apiextensionsclient.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("make a client of the super cluster: %w", err)
	}
	c := &tenantConversion{tenants: of.conversions, network: of.network, crds: crds}
	gatewayOf := func(key string) (conversion.Gateway, bool) {
		access, served := of.accessOf(key)
		return gatewayFor(access), served
	}
	c.keeper = &conversion.Keeper{
		CRDs: mgr.GetCache(), Super: mgr.GetClient(), GatewayOf: gatewayOf, Log: mgr.GetLogger().WithName("conversion"),
	}
	c.keeper.Init()
	read := func(ctx context.Context, name string) (*resources.CRD, error) {
		return clients.CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	}
	c.handler = conversion.NewHandler(c.tenants, crds, read, of.isGone)
	return c, nil
}

// gatewayFor returns how the super cluster reaches the gateway for a tenant.
func gatewayFor(access gatewayaccess.Access) conversion.Gateway {
	return conversion.Gateway{URL: access.Server, CA: access.CA, Key: access.ContinueKey}
}

// set adds a tenant, which the admission knows.
func (c *tenantConversion) set(key string, handler *convert.Handler) {
	c.tenants.Set(conversion.Tenant{
		Namer: naming.Namer{Key: key, Namespaces: handler.Namespaces}, API: handler, Network: c.network.of(key),
	})
	crds, _ := c.crds.All(key)
	c.keeper.Changed(crds, key)
}
