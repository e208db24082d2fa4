package hosted

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"path"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// retryAfter is the time, in seconds, after which a client that writes too fast
// may retry.
const retryAfter = 1

// explainStorage wraps every storage of an apiserver: it passes the purpose of
// a write to etcd and explains etcd's rejections to clients.
func explainStorage(config *app.Config) {
	extensions := &config.ApiExtensions.ExtraConfig
	extensions.CRDRESTOptionsGetter = storageGetter{extensions.CRDRESTOptionsGetter}
	for _, generic := range servers(config) {
		generic.RESTOptionsGetter = storageGetter{generic.RESTOptionsGetter}
	}
}

// limitRequests limits the requests of an apiserver to what its control plane
// may have in flight.
func limitRequests(config *app.Config, c *ControlPlane) {
	outer := &config.Aggregator.GenericConfig.Config
	build, token := outer.BuildHandlerChainFunc, outer.LoopbackClientConfig.BearerToken
	outer.BuildHandlerChainFunc = func(handler http.Handler, generic *genericapiserver.Config) http.Handler {
		filter := c.filter(generic)
		filter.Cached = true
		return withOrigin(filter.Wrap(build(handler, generic)), token)
	}
}

// filter returns the filter of an apiserver that serves the control plane only.
func (c *ControlPlane) filter(config *genericapiserver.Config) inflight.Filter {
	return inflight.Filter{
		Tenant:     func(context.Context) (*inflight.Tenant, error) { return c.requests, nil },
		IsPlatform: func(r *http.Request) bool { return c.creds.isPlatform(r.TLS) },
		Resolver:   config.RequestInfoResolver, IsLongRunning: config.LongRunningFunc, IsInternal: isInternal,
		CallsWebhook: chain.CallsWebhook, Types: decodedTypes(),
	}
}

// decodedTypes returns the types as which apiservers decode the bodies of requests:
// of their own kinds, and the options of deletions.
var decodedTypes = sync.OnceValue(func() *nesting.Types {
	return nesting.TypesOf(legacyscheme.Scheme, extensionsapiserver.Scheme, aggregatorscheme.Scheme, metainternalversionscheme.Scheme)
})

// servers returns the three servers of which an apiserver consists. The
// aggregator is the first to receive a request.
func servers(config *app.Config) []*genericapiserver.Config {
	return []*genericapiserver.Config{
		&config.Aggregator.GenericConfig.Config, config.KubeAPIs.ControlPlane.Generic, &config.ApiExtensions.GenericConfig.Config,
	}
}

type originKey struct{}

// withOrigin marks the requests of the control plane's own controllers. It
// recognizes them by their token: a cluster admin can impersonate every user.
func withOrigin(handler http.Handler, token string) http.Handler {
	own := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), own) == 1 {
			r = r.WithContext(context.WithValue(r.Context(), originKey{}, true))
		}
		handler.ServeHTTP(w, r)
	})
}

// isInternal reports whether one of the control plane's own controllers sent a
// request.
func isInternal(ctx context.Context) bool {
	internal, _ := ctx.Value(originKey{}).(bool)
	return internal || chain.IsInternal(ctx)
}

// purposeOf returns the purpose of a request's writes.
func purposeOf(ctx context.Context) quota.Purpose {
	info, ok := apirequest.RequestInfoFrom(ctx)
	if !ok {
		return quota.Ordinary
	}
	own := isInternal(ctx)
	switch {
	case info.Verb == "delete", info.Verb == "deletecollection":
		return quota.Vital
	case !own:
		return quota.Ordinary
	case info.Verb != "create":
		return quota.Upkeep
	case info.Namespace == "", info.APIGroup == "rbac.authorization.k8s.io":
		return quota.Vital // tenants cannot make controllers create these
	default:
		return quota.Ordinary
	}
}

// storageGetter wraps the storages of all resources.
type storageGetter struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g storageGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	inner := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := inner(config, prefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
		if err != nil {
			return store, destroy, err
		}
		return explainedStorage{Interface: store, resource: resource}, destroy, nil
	}
	return options, nil
}

// explainedStorage is the storage of one resource.
type explainedStorage struct {
	storage.Interface

	resource schema.GroupResource
}

// Create implements storage.Interface.
func (s explainedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.explain(s.Interface.Create(quota.WithPurpose(ctx, purposeOf(ctx)), key, obj, out, ttl), key)
}

// GuaranteedUpdate implements storage.Interface.
func (s explainedStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	ctx = quota.WithPurpose(ctx, purposeOf(ctx))
	return s.explain(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached), key)
}

// Get implements storage.Interface.
func (s explainedStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return s.explain(s.Interface.Get(ctx, key, opts, out), key)
}

// GetList implements storage.Interface.
func (s explainedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.explain(s.Interface.GetList(ctx, key, opts, list), key)
}

// explain converts an error of etcd to one for clients, which neither exposes
// the store nor looks like an internal error. It returns other errors
// unchanged.
func (s explainedStorage) explain(err error, key string) error {
	if err == nil {
		return nil
	}
	switch codeOf(err) {
	case codes.ResourceExhausted:
		return s.explainShortage(err, path.Base(key))
	case codes.Unavailable:
		return apierrors.NewServiceUnavailable("the store of this cluster does not respond: try again later")
	default:
		return err
	}
}

// codeOf returns the gRPC code of an error of etcd, which its client wraps if
// it is a well-known one.
func codeOf(err error) codes.Code {
	if known, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return known.Code()
	}
	return status.Code(err)
}

func (s explainedStorage) explainShortage(err error, name string) error {
	reason, text, rejected := quota.Rejection(err.Error())
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return storeFull("the store of this platform is full: delete objects, or ask the platform's administrator")
	case !rejected:
		return err
	case reason == quota.ReasonPace:
		return apierrors.NewTooManyRequests(text, retryAfter)
	case reason == quota.ReasonStore:
		return storeFull(text)
	default:
		return apierrors.NewForbidden(s.resource, name, errors.New(text))
	}
}

// storeFull returns an error for a shortage that the client has not caused.
func storeFull(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: metav1.StatusReasonServiceUnavailable, Message: text,
	}}
}
