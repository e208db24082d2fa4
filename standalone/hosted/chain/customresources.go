package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apiextensionsserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	externalversions "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/apiapproval"
	"k8s.io/apiextensions-apiserver/pkg/controller/establish"
	"k8s.io/apiextensions-apiserver/pkg/controller/finalizer"
	"k8s.io/apiextensions-apiserver/pkg/controller/nonstructuralschema"
	"k8s.io/apiextensions-apiserver/pkg/controller/status"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// definitionsResync is upstream's. The controllers rely on it: one of them
// does not look at definitions that exist when it starts.
const definitionsResync = 5 * time.Minute

// errUnreadable contains no reason: definitions are not for all users to read.
var errUnreadable = errors.New("the definitions of custom resources cannot be read")

// customResources serves the custom resources of a tenant, and runs upstream's
// controllers of their definitions. It repeats the second part of New of
// upstream's apiserver of custom resources. Discovery and OpenAPI documents are
// computed when they are requested, so it has no controllers of them.
type customResources struct {
	background

	definitions informers.CustomResourceDefinitionInformer
	// resources serves resources and nothing else.
	resources http.Handler
	changes   atomic.Int64 // of definitions
}

// newCustomResources starts the server of custom resources of a tenant.
func (c *Chain) newCustomResources(t *Tenant) (*customResources, error) {
	client, err := clientset.NewForConfig(t.config)
	if err != nil {
		return nil, fmt.Errorf("create a client of the %s of tenant %q: %w", definitions, t.spec.Name, err)
	}
	factory := externalversions.NewSharedInformerFactory(client, definitionsResync)
	s := &customResources{definitions: factory.Apiextensions().V1().CustomResourceDefinitions()}
	establishing := establish.NewEstablishingController(s.definitions, client.ApiextensionsV1())
	collections, err := s.serve(c, t, establishing)
	if err != nil {
		return nil, fmt.Errorf("create the server of custom resources of tenant %q: %w", t.spec.Name, err)
	}
	naming := status.NewNamingConditionController(klog.FromContext(t.life), s.definitions, client.ApiextensionsV1())
	structure := nonstructuralschema.NewConditionController(s.definitions, client.ApiextensionsV1())
	approval := apiapproval.NewKubernetesAPIApprovalPolicyConformantConditionController(s.definitions, client.ApiextensionsV1())
	deletion := finalizer.NewCRDFinalizer(s.definitions, client.ApiextensionsV1(), collections)
	if err := s.observe(t); err != nil {
		return nil, fmt.Errorf("observe the %s of tenant %q: %w", definitions, t.spec.Name, err)
	}
	s.run(t.life, s.definitions.Informer().HasSynced,
		supervision{
			late:   func() { c.report(t, errUnreadable) },
			failed: func(err error) { c.report(t, fmt.Errorf("run a controller of %s: %w", definitions, err)) },
			expire: func() { t.extensions.expire(s) },
		},
		naming.RunWithContext,
		establishing.RunWithContext,
		func(ctx context.Context) { structure.RunWithContext(1, ctx) },
		func(ctx context.Context) { approval.RunWithContext(1, ctx) },
		func(ctx context.Context) { deletion.RunWithContext(1, ctx) },
		func(ctx context.Context) {
			factory.StartWithContext(ctx)
			<-ctx.Done()
			factory.Shutdown()
		},
	)
	return s, nil
}

// serve creates what serves the resources. It also deletes those of a deleted
// definition.
func (s *customResources) serve(c *Chain, t *Tenant, establishing *establish.EstablishingController) (finalizer.CRClientGetter, error) {
	services, err := newWebhookResolver(t.informers)
	if err != nil {
		return nil, err
	}
	resources, err := apiextensionsserver.NewCustomResourceDefinitionHandler(
		nil, nil, // discovery: those requests are not sent there
		s.definitions, http.NotFoundHandler(), newCustomStores(c, t), admissions{c}, establishing,
		services, t.webhookClients(c.generic.TracerProvider), 1, authorizers{c},
		c.generic.RequestTimeout, time.Duration(c.generic.MinRequestTimeout)*time.Second,
		c.builtIn.schemas, c.generic.MaxRequestBodyBytes)
	s.resources = resources
	return resources, err
}

// observe counts changes of definitions, whose APIs are registered then, and
// ends the server some time after the last definition was deleted.
func (s *customResources) observe(t *Tenant) error {
	s.unused = time.AfterFunc(lingering, func() { t.extensions.endUnused(t.life, s) })
	informer := s.definitions.Informer()
	changed := func() {
		s.changes.Add(1)
		t.registration.request(registrationDelay)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) {
			changed()
			if len(informer.GetStore().ListKeys()) == 0 {
				s.unused.Reset(lingering)
			}
		},
	})
	return err
}
