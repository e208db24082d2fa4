package hosted

import (
	"k8s.io/client-go/informers"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// dropContents strips the contents of Secrets from the informers of upstream's
// kube-apiserver, except those that its controllers and authenticators read.
// The apiserver's own cache contains the Secrets. The contents of ConfigMaps
// stay: policies use them as parameters.
func dropContents(factory informers.SharedInformerFactory) error {
	return factory.Core().V1().Secrets().Informer().SetTransform(views.Economize)
}
