package chain

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	api "k8s.io/kubernetes/pkg/apis/core"
	allocator "k8s.io/kubernetes/pkg/registry/core/service/allocator/storage"
)

// TestAForgottenStorage: a storage that upstream creates itself is an error at
// once, whether it bypasses the chain's storage or is not decorated by it.
func TestAForgottenStorage(t *testing.T) {
	g := NewWithT(t)
	config, _, err := newConfig(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	services := api.Resource("services")
	stored, err := config.KubeAPIs.ControlPlane.StorageFactory.NewConfig(services, &api.Service{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = allocator.NewEtcd(nil, "/ranges/servicenodeports", stored.ForResource(services))
	g.Expect(err).To(MatchError(errBypass))

	newFunc := func() runtime.Object { return &api.Service{} }
	for name, getter := range map[string]generic.RESTOptionsGetter{
		"kube-apiserver": config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter,
		"definitions":    config.ApiExtensions.GenericConfig.RESTOptionsGetter,
		"aggregator":     config.Aggregator.GenericConfig.RESTOptionsGetter,
	} {
		options, err := getter.GetRESTOptions(services, &api.Service{})
		g.Expect(err).NotTo(HaveOccurred(), name)
		_, _, err = options.Decorator(options.StorageConfig, "/services", nil, newFunc, newFunc, nil, nil, nil)
		g.Expect(err).To(MatchError(errBypass), name)
	}
}
