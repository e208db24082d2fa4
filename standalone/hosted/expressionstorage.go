package hosted

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// storedDefinitions are CustomResourceDefinitions, as the keyspace names them.
const storedDefinitions = "apiextensions.k8s.io/customresourcedefinitions"

// withExpressions returns the resources whose objects have expressions, and how the
// keyspace names them.
func withExpressions() map[schema.GroupResource]string {
	const admission, devices = "admissionregistration.k8s.io", "resource.k8s.io"
	return map[schema.GroupResource]string{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: storedDefinitions,
		{Group: admission, Resource: "validatingadmissionpolicies"}:            "validatingadmissionpolicies",
		{Group: admission, Resource: "mutatingadmissionpolicies"}:              "mutatingadmissionpolicies",
		{Group: admission, Resource: "validatingwebhookconfigurations"}:        "validatingwebhookconfigurations",
		{Group: admission, Resource: "mutatingwebhookconfigurations"}:          "mutatingwebhookconfigurations",
		{Group: devices, Resource: "deviceclasses"}:                            "deviceclasses",
		{Group: devices, Resource: "resourceclaims"}:                           "resourceclaims",
		{Group: devices, Resource: "resourceclaimtemplates"}:                   "resourceclaimtemplates",
	}
}

// newExpressions returns the account of the expressions of a control plane.
func newExpressions(in *store, spec Spec) *expressions.Account {
	resources := slices.Sorted(maps.Values(withExpressions()))
	account := expressions.NewAccount(spec.Name, in.feed, resources, workOfRecord)
	account.SetLimit(spec.Expressions)
	return account
}

// workOfRecord returns how much work it is to compile the expressions of a record.
// One that cannot be decoded has none: nothing else decodes it either.
func workOfRecord(resource string, value []byte) (work int64) {
	defer views.Recovered(func(error) { work = 0 })
	decoder := legacyscheme.Codecs.UniversalDecoder()
	if resource == storedDefinitions {
		decoder = extensionsapiserver.Codecs.UniversalDecoder()
	}
	object, err := runtime.Decode(decoder, value)
	if err != nil {
		return 0
	}
	return int64(workOf(object))
}

// countedStorage is the storage of a resource whose objects have expressions. It
// rejects writes that exceed the limit of their control plane.
type countedStorage struct {
	storage.Interface

	resource schema.GroupResource
	accounts *expressions.Accounts
}

// Create implements storage.Interface.
func (s countedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	reserved, err := s.reserve(ctx, key, obj)
	if err != nil {
		return err
	}
	var revision int64
	defer func() { reserved.Done(revision) }() // also after a panic
	err = s.Interface.Create(ctx, key, obj, out, ttl)
	revision = revisionOf(out, err)
	return err
}

// GuaranteedUpdate implements storage.Interface.
func (s countedStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	var (
		reserved *expressions.Reservation // of the last attempt
		revision int64
	)
	defer func() { reserved.Done(revision) }() // also after a panic
	counted := func(input runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		reserved.Done(0)
		reserved = nil
		output, ttl, err := tryUpdate(input, response)
		if err == nil && (response.ResourceVersion == 0 || !sameGeneration(input, output)) {
			reserved, err = s.reserve(ctx, key, output)
		}
		return output, ttl, err
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, counted, cached)
	revision = revisionOf(destination, err)
	return err
}

// Delete implements storage.Interface.
func (s countedStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	if err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts); err != nil {
		return err
	}
	if account, resource, name, err := s.find(ctx, key); err == nil {
		account.Deleted(resource, name, revisionOf(out, nil))
	}
	return nil
}

// sameGeneration reports whether an update leaves the specification of an object as
// it was. Claims of devices have no generation, and cannot be changed.
func sameGeneration(before, after runtime.Object) bool {
	was, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	is, err := meta.Accessor(after)
	return err == nil && was.GetGeneration() == is.GetGeneration()
}

// revisionOf returns the revision at which an object was written; zero after an
// error.
func revisionOf(written runtime.Object, err error) int64 {
	if err != nil {
		return 0
	}
	revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(written)
	if err != nil {
		return 0
	}
	return int64(revision) //nolint:gosec // revisions of etcd are of this type
}

// reserve reserves the work of an object that is about to be stored.
func (s countedStorage) reserve(ctx context.Context, key string, object runtime.Object) (*expressions.Reservation, error) {
	account, resource, name, err := s.find(ctx, key)
	if err != nil {
		return nil, err
	}
	limited := purposeOf(ctx) == quota.Ordinary && !isPlatform(ctx)
	reserved, err := account.Reserve(ctx, resource, name, int64(workOf(object)), limited)
	if exceeded, ok := errors.AsType[*expressions.LimitError](err); ok {
		return nil, apierrors.NewForbidden(s.resource, path.Base(key), exceeded)
	}
	return reserved, err
}

// find returns the account of a context, and how it names the record of a key.
func (s countedStorage) find(ctx context.Context, key string) (account *expressions.Account, resource, name string, err error) {
	tenant, err := keyspace.Tenant(ctx)
	if err != nil {
		return nil, "", "", err
	}
	kind, below, ok := keyspace.SplitRecord([]byte(key))
	if account = s.accounts.Of(tenant); account == nil || !ok {
		return nil, "", "", apierrors.NewServiceUnavailable("this cluster is stopping: try again later")
	}
	return account, string(kind), string(below), nil
}
