package chain

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/registry/rest"
	noderest "k8s.io/kubernetes/pkg/registry/core/node/rest"
	podrest "k8s.io/kubernetes/pkg/registry/core/pod/rest"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/pkg/registry/core/service"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// abilities are the interfaces by which upstream recognizes what a registry
// serves, and how.
func abilities() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[rest.CategoriesProvider](), reflect.TypeFor[rest.CollectionDeleter](), reflect.TypeFor[rest.Connecter](),
		reflect.TypeFor[rest.Creater](), //nolint:misspell // upstream's name
		reflect.TypeFor[rest.CreaterUpdater](), reflect.TypeFor[rest.Getter](),
		reflect.TypeFor[rest.GetterWithOptions](), reflect.TypeFor[rest.GracefulDeleter](), reflect.TypeFor[rest.GroupVersionAcceptor](),
		reflect.TypeFor[rest.GroupVersionKindProvider](), reflect.TypeFor[rest.Lister](), reflect.TypeFor[rest.MayReturnFullObjectDeleter](),
		reflect.TypeFor[rest.NamedCreater](), reflect.TypeFor[rest.Patcher](), reflect.TypeFor[rest.ResetFieldsStrategy](),
		reflect.TypeFor[rest.Scoper](), reflect.TypeFor[rest.ShortNamesProvider](), reflect.TypeFor[rest.SingularNameProvider](),
		reflect.TypeFor[rest.StandardStorage](), reflect.TypeFor[rest.Storage](), reflect.TypeFor[rest.StorageMetadata](),
		reflect.TypeFor[rest.StorageVersionProvider](), reflect.TypeFor[rest.SubresourceObjectMetaPreserver](),
		reflect.TypeFor[rest.TableConvertor](), reflect.TypeFor[rest.Updater](), reflect.TypeFor[rest.Watcher](),
	}
}

// TestReplacementsServeTheSame: the registries that dispatch by tenant have the
// abilities of those that they replace.
func TestReplacementsServeTheSame(t *testing.T) {
	for name, tc := range map[string]struct{ upstream, ours reflect.Type }{
		"services":         {reflect.TypeFor[*servicestore.REST](), reflect.TypeFor[serviceRegistry]()},
		"services/status":  {reflect.TypeFor[*servicestore.StatusREST](), reflect.TypeFor[serviceStatus]()},
		"services/proxy":   {reflect.TypeFor[*service.ProxyREST](), reflect.TypeFor[connecter]()},
		"nodes/proxy":      {reflect.TypeFor[*noderest.ProxyREST](), reflect.TypeFor[connecter]()},
		"pods/attach":      {reflect.TypeFor[*podrest.AttachREST](), reflect.TypeFor[connecter]()},
		"pods/eviction":    {reflect.TypeFor[*podstore.EvictionREST](), reflect.TypeFor[evictions]()},
		"pods/exec":        {reflect.TypeFor[*podrest.ExecREST](), reflect.TypeFor[connecter]()},
		"pods/log":         {reflect.TypeFor[*podrest.LogREST](), reflect.TypeFor[podLogs]()},
		"pods/portforward": {reflect.TypeFor[*podrest.PortForwardREST](), reflect.TypeFor[connecter]()},
		"pods/proxy":       {reflect.TypeFor[*podrest.ProxyREST](), reflect.TypeFor[connecter]()},
	} {
		t.Run(name, func(t *testing.T) {
			for _, each := range abilities() {
				NewWithT(t).Expect(tc.ours.Implements(each)).To(Equal(tc.upstream.Implements(each)), each.Name())
			}
		})
	}
}

// TestMethodsOfServices fails when upstream's registry of Services has a method
// that is not decided. The embedded store has them, too.
func TestMethodsOfServices(t *testing.T) {
	decided := []string{
		// of the tenant, because they allocate or release
		"Create", "Delete", "DeleteCollection", "Update",
		// shared: they read, with the context of the request, or describe
		"Categories", "ConvertToTable", "DeleteReturnsDeletedObject",
		"Get", "GetResetFields", "GetSingularName", "List", "NamespaceScoped", "New", "NewList",
		"ShortNames", "StorageVersion", "Watch",
		// not called through the API, or behind a feature gate that is off
		"CompleteWithOptions", "Destroy", "GetCorruptObjDeleter", "GetCreateStrategy", "GetDeleteStrategy", "GetUpdateStrategy", "ListPredicate",
		"ReadinessCheck", "ResourceLocation", "WatchPredicate",
	}
	var found []string
	for method := range reflect.TypeFor[*servicestore.REST]().Methods() {
		found = append(found, method.Name)
	}
	NewWithT(t).Expect(found).To(ConsistOf(decided))
}
