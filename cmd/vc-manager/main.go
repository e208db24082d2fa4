// Command vc-manager brings VirtualClusters to life.
package main

import (
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/hosted"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	o := &options{}
	os.Exit(component.Main(app.NewCommand(o.provisioners, o.addFlags)))
}

// options select the provisioners.
type options struct {
	// host is the service account of vc-host; zero without one.
	host types.NamespacedName
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	app.NameVar(flags, &o.host, "host-service-account",
		"service account of vc-host as NAMESPACE/NAME, which runs the control planes of provisioner Hosted; empty: there is no vc-host")
}

// provisioners are those that need nothing but the super cluster, and those of
// vc-host.
func (o *options) provisioners(mgr manager.Manager) (provisioner.Registry, error) {
	elsewhere := external.New(mgr.GetAPIReader())
	if err := mgr.Add(elsewhere); err != nil {
		return nil, err
	}
	registry := provisioner.Registry{tenancyv1alpha1.ProvisionerExternal: elsewhere}
	if o.host.Name != "" {
		registry[tenancyv1alpha1.ProvisionerHosted] = hosted.New(mgr, o.host)
	}
	return registry, nil
}
