package hosted

import (
	"k8s.io/client-go/informers"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// dropContents strips the contents of ConfigMaps and Secrets from a control
// plane's informers, except those that its controllers and authenticators read.
// The apiserver's own cache has them already.
func dropContents(factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	if err := core.ConfigMaps().Informer().SetTransform(views.Economize); err != nil {
		return err
	}
	return core.Secrets().Informer().SetTransform(views.Economize)
}
