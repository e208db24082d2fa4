package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	// registrationDelay coalesces changes of definitions and APIServices.
	registrationDelay = 100 * time.Millisecond
	// automanagedOnStart and automanaged are the values of upstream's label of
	// an APIService that is registered at each start, and always.
	automanagedOnStart = "onstart"
	automanaged        = "true"
	// customGroupPriority and customVersionPriority are those of all custom
	// resources.
	customGroupPriority, customVersionPriority = 1000, 100
)

// registration keeps the APIServices of a tenant's local APIs.
type registration struct {
	upkeep

	started atomic.Bool // reports whether it has succeeded since the start
}

// begin enables the registration, and requests the first one.
func (r *registration) begin() {
	r.upkeep.begin()
	r.request(0)
}

// registerAPIs creates, changes and deletes the APIServices of a tenant's local
// APIs: at its start those of the built-in ones, and always those of custom
// resources. All local APIs are available. It does what upstream's controllers
// of registration, of the registration of custom resources, and of local
// availability do, without an informer.
func (c *Chain) registerAPIs(ctx context.Context, t *Tenant) error {
	ctx = keyspace.NewContext(ctx, t.spec.Name)
	current, err := c.storedAPIServices(ctx)
	if err != nil {
		return err
	}
	starting := !t.registration.started.Load()
	desired, complete, err := c.localAPIs(ctx, t, starting)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(t.config)
	if err != nil {
		return fmt.Errorf("create a client of the APIServices of tenant %q: %w", t.spec.Name, err)
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(current)), maps.Keys(desired))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !complete && desired[name] == nil {
			continue // may be that of a custom resource
		}
		todo := actionOn(current[name], desired[name], starting)
		if each := apply(ctx, client.ApiregistrationV1().APIServices(), todo, current[name], desired[name]); each != nil {
			err = errors.Join(err, fmt.Errorf("%s APIService %s: %w", todo, name, each))
		}
	}
	if err == nil {
		t.registration.started.Store(true)
	}
	return err
}

// storedAPIServices returns the APIServices of a tenant by name. They are not
// remembered.
func (c *Chain) storedAPIServices(ctx context.Context) (map[string]*apiregistrationv1.APIService, error) {
	response, err := c.opts.Store.KV.Get(ctx, apiServicesKey, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list APIServices: %w", err)
	}
	decoder := aggregatorscheme.Codecs.UniversalDecoder(apiregistrationv1.SchemeGroupVersion)
	found := make(map[string]*apiregistrationv1.APIService, len(response.Kvs))
	for _, kv := range response.Kvs {
		service := &apiregistrationv1.APIService{}
		if err := runtime.DecodeInto(decoder, kv.Value, service); err != nil {
			return nil, fmt.Errorf("decode APIService %s: %w", kv.Key[len(apiServicesKey):], err)
		}
		service.ResourceVersion = strconv.FormatInt(kv.ModRevision, 10)
		found[service.Name] = service
	}
	return found, nil
}

// localAPIs returns the APIServices of a tenant's local APIs by name, and
// whether those of its custom resources are among them. A start does not have
// definitions read that no request needs.
func (c *Chain) localAPIs(
	ctx context.Context, t *Tenant, starting bool,
) (found map[string]*apiregistrationv1.APIService, complete bool, err error) {
	found = maps.Clone(c.builtIn.services)
	custom := t.extensions.current()
	if custom == nil && starting {
		n, err := c.countDefinitions(ctx, t)
		return found, n == 0, err
	}
	if custom, err = t.extensions.get(ctx); custom == nil || err != nil {
		return found, err == nil, err
	}
	if !custom.isReady(ctx) { // has been reported
		return found, false, nil
	}
	objects, err := added{tenant: t, custom: custom}.definitions()
	maps.Copy(found, customServices(objects))
	return found, err == nil, err
}

// builtInServices returns the APIServices of built-in versions of groups. The
// group of APIServices has none.
func builtInServices(versions map[string]map[string]bool) map[string]*apiregistrationv1.APIService {
	found := map[string]*apiregistrationv1.APIService{}
	for version, priority := range apiPriorities() {
		if version.Group == "" || versions[version.Group][version.Version] {
			service := localAPIService(version, priority.Group, priority.Version, automanagedOnStart)
			found[service.Name] = service
		}
	}
	return found
}

// customServices returns the APIServices of custom resources.
func customServices(objects []*apiextensionsv1.CustomResourceDefinition) map[string]*apiregistrationv1.APIService {
	found := map[string]*apiregistrationv1.APIService{}
	for _, object := range objects {
		for _, v := range object.Spec.Versions {
			if v.Served {
				version := schema.GroupVersion{Group: object.Spec.Group, Version: v.Name}
				service := localAPIService(version, customGroupPriority, customVersionPriority, automanaged)
				found[service.Name] = service
			}
		}
	}
	return found
}

func localAPIService(of schema.GroupVersion, groupPriority, versionPriority int32, managed string) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name:   of.Version + "." + of.Group,
			Labels: map[string]string{autoregister.AutoRegisterManagedLabel: managed},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: of.Group, Version: of.Version, GroupPriorityMinimum: groupPriority, VersionPriority: versionPriority,
		},
	}
}

// action is what is done with an APIService.
type action string

const (
	actionNone   action = "keep"
	actionCreate action = "create"
	actionUpdate action = "update"
	actionDelete action = "delete"
)

// actionOn decides what is done with an APIService. It repeats checkAPIService of
// upstream's controller. Each of both may be nil.
func actionOn(current, desired *apiregistrationv1.APIService, starting bool) action {
	switch {
	case managementOf(desired) == automanagedOnStart && !starting:
		return actionNone
	case current == nil && desired == nil:
		return actionNone
	case current == nil:
		return actionCreate
	case managementOf(current) != automanaged && managementOf(current) != automanagedOnStart:
		return actionNone
	case managementOf(current) == automanagedOnStart && !starting:
		return actionNone
	case desired == nil:
		return actionDelete
	case reflect.DeepEqual(current.Spec, desired.Spec):
		return actionNone
	default:
		return actionUpdate
	}
}

func managementOf(service *apiregistrationv1.APIService) string {
	if service == nil {
		return ""
	}
	return service.Labels[autoregister.AutoRegisterManagedLabel]
}

// apply does it. A change or deletion in the meantime is no error: it requests
// the next registration.
func apply(
	ctx context.Context, client apiregistration.APIServiceInterface, todo action, current, desired *apiregistrationv1.APIService,
) (err error) {
	switch todo {
	case actionCreate:
		current, err = client.Create(ctx, desired, metav1.CreateOptions{})
	case actionUpdate:
		current = current.DeepCopy()
		current.Spec = desired.Spec
		current, err = client.Update(ctx, current, metav1.UpdateOptions{})
	case actionDelete:
		err = client.Delete(ctx, current.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(current.UID))})
		current = nil
	case actionNone:
	}
	if err == nil && current != nil {
		err = setAvailable(ctx, client, current)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// setAvailable sets the condition of a local API.
func setAvailable(ctx context.Context, client apiregistration.APIServiceInterface, service *apiregistrationv1.APIService) error {
	if service.Spec.Service != nil {
		return nil // upstream's controller sets it
	}
	available := service.DeepCopy()
	helper.SetAPIServiceCondition(available, helper.NewLocalAvailableAPIServiceCondition())
	if reflect.DeepEqual(available.Status, service.Status) {
		return nil
	}
	_, err := client.UpdateStatus(ctx, available, metav1.UpdateOptions{})
	return err
}
