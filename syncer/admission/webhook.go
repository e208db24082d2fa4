// Package admission calls the validators for objects of converted tenants. They
// are in the super cluster from the beginning, whose apiservers ask this webhook
// before any client writes one.
package admission

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Path is where the webhook is served.
const Path = "/validate-converted"

var (
	errStandby = errors.New("this replica of vc-syncer does not count what converted tenants have, or not yet: try again")
	// errDryRun and errNotStored are the results of writes that are not executed.
	errDryRun    = apierrors.NewBadRequest("it is a dry run")
	errNotStored = apierrors.NewBadRequest("the tenant stores too much")
)

// Gate calls validators.
type Gate interface {
	// Write executes a write of a tenant's object if all validators allow it.
	Write(ctx context.Context, tenant plugins.Tenant, obj, was client.Object, write func(context.Context) error) error
}

// Webhook answers the super cluster.
type Webhook struct {
	// Gate calls the validators.
	Gate Gate
	// Storage limits what tenants store. It is called last, for what their clients
	// write, so that what a validator rejects is not counted there, nor the reverse.
	Storage admission.Handler
	// Scheme has the kinds of objects.
	Scheme *runtime.Scheme
	// Namespaces reads namespaces from a cache, and Live around it.
	Namespaces, Live client.Reader
	// Active reports whether this replica answers: the usage of a tenant is
	// exact if one replica does.
	Active func() bool
}

// Handle implements admission.Handler.
func (w *Webhook) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !w.Active() {
		return admission.Errored(http.StatusServiceUnavailable, errStandby)
	}
	obj, err := w.decode(request.Kind, request.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var was client.Object
	if request.Operation == admissionv1.Update {
		if was, err = w.decode(request.Kind, request.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if plugins.TenantOf(obj) == "" {
		return w.store(ctx, request) // the platform's
	}
	tenant, err := w.tenantOf(ctx, obj)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the tenant of an object", "namespace", request.Namespace, "name", request.Name)
		return admission.Errored(http.StatusServiceUnavailable, errNoTenant)
	}
	result := plugins.ErrAwaited
	if request.DryRun != nil && *request.DryRun {
		result = errDryRun
	}
	stored := admission.Allowed("")
	err = w.Gate.Write(ctx, tenant, obj, was, func(ctx context.Context) error {
		if stored = w.store(ctx, request); !stored.Allowed {
			return errNotStored
		}
		return result
	})
	if !stored.Allowed {
		return stored
	}
	return response(err)
}

// store asks whether a tenant may store what its client writes.
func (w *Webhook) store(ctx context.Context, request admission.Request) admission.Response {
	if accountOf(request) == "" {
		return admission.Allowed("")
	}
	return w.Storage.Handle(ctx, request)
}

// errNoTenant tells a tenant as little as possible of the super cluster.
var errNoTenant = errors.New("the limits of the tenant are not known yet: try again")

// response converts the result of a write that was not executed here.
func response(err error) admission.Response {
	rejection := plugins.AsRejection(err)
	switch {
	case errors.Is(err, plugins.ErrAwaited), errors.Is(err, errDryRun):
		return admission.Allowed("")
	case rejection != nil:
		return admission.Denied(rejection.Message)
	}
	return admission.Errored(http.StatusServiceUnavailable, err)
}

// decode returns the object of a request.
func (w *Webhook) decode(kind metav1.GroupVersionKind, raw runtime.RawExtension) (client.Object, error) {
	obj, err := w.Scheme.New(schema.GroupVersionKind(kind))
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return nil, errors.New("the request is not for an object")
	}
	return typed, admission.NewDecoder(w.Scheme).DecodeRaw(raw, typed)
}

// tenantOf returns the tenant of an object, by its namespace.
func (w *Webhook) tenantOf(ctx context.Context, obj client.Object) (plugins.Tenant, error) {
	namespace, isNamespace := obj.(*corev1.Namespace)
	if !isNamespace {
		namespace = &corev1.Namespace{}
		key := client.ObjectKey{Name: obj.GetNamespace()}
		err := w.Namespaces.Get(ctx, key, namespace)
		if apierrors.IsNotFound(err) {
			err = w.Live.Get(ctx, key, namespace) // a new one
		}
		if err != nil {
			return plugins.Tenant{}, err
		}
	}
	return plugins.Tenant{
		Key:  namespace.Labels[names.Converted],
		Name: namespace.Labels[names.VCName], Namespace: namespace.Labels[names.VCNamespace],
		UID: types.UID(namespace.Annotations[names.VCUID]),
	}, nil
}
