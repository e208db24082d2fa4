// Command vc-manager brings VirtualClusters to life.
package main

import (
	"os"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	os.Exit(component.Main(app.NewCommand(provisioners)))
}

// provisioners are those that need nothing but the super cluster.
func provisioners(mgr manager.Manager) (provisioner.Registry, error) {
	elsewhere := external.New(mgr.GetAPIReader())
	if err := mgr.Add(elsewhere); err != nil {
		return nil, err
	}
	return provisioner.Registry{tenancyv1alpha1.ProvisionerExternal: elsewhere}, nil
}
