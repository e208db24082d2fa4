package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/controller-manager/pkg/informerfactory"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/discovered"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// resync is the resync period of informers.
const resync = 10 * time.Hour

// Cluster is what the controllers of a control plane work with.
type Cluster struct {
	// Config and Client are clients of the control plane itself.
	Config *rest.Config
	Client kubernetes.Interface
	// APIs keeps what the controllers discover, with that of other control
	// planes; nil for one of its own.
	APIs *discovered.Shared
	// Authority signs client certificates. Its certificate is published as that
	// of the apiserver.
	Authority pki.Authority
	// Validity limits that of client certificates.
	Validity time.Duration
	// SigningKey signs service account tokens, in PEM.
	SigningKey []byte
	// Discovery is the interval at which garbage collection and quota discover
	// new resources; 30 s when zero.
	Discovery time.Duration
}

// Environment has the dependencies of controllers.
type Environment struct {
	cluster   Cluster
	config    *rest.Config
	client    kubernetes.Interface
	metadata  metadata.Interface
	typed     informers.SharedInformerFactory
	metadatas metadatainformer.SharedInformerFactory
	informers informerfactory.InformerFactory
	// graph has the informers of the garbage collector.
	graph informerfactory.InformerFactory
	// discovery and restMapper are for controllers that need all APIs.
	discovery  discovery.DiscoveryInterface
	restMapper apimeta.ResettableRESTMapper
	// started is closed once the informers run.
	started chan struct{}
}

// NewEnvironment returns the environment of all controllers of a cluster. The
// typed informers are the apiserver's own, so that objects are not cached
// twice.
func NewEnvironment(cluster Cluster, typed informers.SharedInformerFactory) (*Environment, error) {
	env, err := newEnvironment(cluster, typed)
	if err != nil {
		return nil, err
	}
	env.metadatas = metadatainformer.NewSharedInformerFactoryWithOptions(env.metadata, resync,
		metadatainformer.WithTransform(views.DropManagedFields))
	env.informers = informerfactory.NewInformerFactory(env.typed, env.metadatas)
	env.graph = env.informers
	return env, nil
}

// onViews returns the environment of one controller.
func onViews(cluster Cluster, factory *views.Factory) (*Environment, error) {
	env, err := newEnvironment(cluster, factory)
	if err != nil {
		return nil, err
	}
	env.metadatas = factory.Metadata()
	env.informers = informerfactory.NewInformerFactory(env.typed, env.metadatas)
	env.graph = factory.MetadataOnly()
	return env, nil
}

func newEnvironment(cluster Cluster, typed informers.SharedInformerFactory) (*Environment, error) {
	cluster.Discovery = cmp.Or(cluster.Discovery, defaultDiscovery)
	env := &Environment{
		cluster: cluster, config: cluster.Config, client: cluster.Client, typed: typed, started: make(chan struct{}),
	}
	var err error
	if env.metadata, err = metadata.NewForConfig(cluster.Config); err != nil {
		return nil, fmt.Errorf("create a metadata client: %w", err)
	}
	shared := cluster.APIs
	if shared == nil {
		shared = discovered.NewShared()
	}
	client, err := discovered.NewClient(cluster.Config, env.client.Discovery(), shared)
	if err != nil {
		return nil, err
	}
	env.discovery, env.restMapper = client, discovered.NewMapper(client)
	return env, nil
}

func (e *Environment) startInformers(ctx context.Context) {
	e.informers.Start(ctx.Done())
	close(e.started)
}

// shutdownInformers waits for the informers of the controllers only; the typed
// ones stop with the apiserver.
func (e *Environment) shutdownInformers() { e.metadatas.Shutdown() }
