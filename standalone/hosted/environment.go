package hosted

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// resync is the resync period of informers.
const resync = 10 * time.Hour

// environment has the dependencies of the controllers of one control plane. The
// typed informers are the apiserver's own, so that objects are not cached
// twice.
type environment struct {
	spec       Spec
	creds      *credentials
	config     *rest.Config
	client     kubernetes.Interface
	metadata   metadata.Interface
	typed      informers.SharedInformerFactory
	metadatas  metadatainformer.SharedInformerFactory
	informers  informerfactory.InformerFactory
	restMapper apimeta.ResettableRESTMapper
	// started is closed once the informers run.
	started chan struct{}
}

func newEnvironment(spec Spec, creds *credentials, server *apiServer) (*environment, error) {
	env := &environment{
		spec: spec, creds: creds,
		config: server.loopback, client: server.client, typed: server.informers,
		started: make(chan struct{}),
	}
	var err error
	if env.metadata, err = metadata.NewForConfig(server.loopback); err != nil {
		return nil, fmt.Errorf("create a metadata client: %w", err)
	}
	if env.metadatas = server.metadatas; env.metadatas == nil {
		env.metadatas = metadatainformer.NewSharedInformerFactoryWithOptions(env.metadata, resync,
			metadatainformer.WithTransform(views.DropManagedFields))
	}
	env.informers = informerfactory.NewInformerFactory(env.typed, env.metadatas)
	env.restMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(env.client.Discovery()))
	return env, nil
}

func (e *environment) startInformers(ctx context.Context) {
	e.informers.Start(ctx.Done())
	close(e.started)
}

// shutdownInformers waits for the informers of the controllers only; the typed
// ones stop with the apiserver.
func (e *environment) shutdownInformers() { e.metadatas.Shutdown() }
