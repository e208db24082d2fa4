package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/projects"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
)

// bookmarkInterval is how often watches get a bookmark.
const bookmarkInterval = time.Minute

// It creates no VirtualClusters: vc-manager does that for ProjectClaims.
//
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=projecttemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=projectclaims,verbs=get;list;watch;create;delete

// addProjects adds the API of projects.
func addProjects(mgr manager.Manager, config *rest.Config) (*projects.Handler, error) {
	live, err := client.NewWithWatch(config, client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of ProjectClaims: %w", err)
	}
	known := projects.NewDirectory()
	served, err := projects.NewHandler(known, projects.NewClaims(mgr.GetCache(), live, mgr.GetLogger().WithName("projects")))
	if err != nil {
		return nil, fmt.Errorf("set up the API of projects: %w", err)
	}
	if err := mgr.Add(&directory{cache: mgr.GetCache(), of: known}); err != nil {
		return nil, fmt.Errorf("add the directory of projects: %w", err)
	}
	return served, nil
}

// directory keeps the projects up to date.
type directory struct {
	cache cache.Cache
	of    *projects.Directory
}

// NeedLeaderElection says that all replicas do it.
func (*directory) NeedLeaderElection() bool { return false }

// Start follows the VirtualClusters until ctx ends.
func (d *directory) Start(ctx context.Context) error {
	informer, err := d.cache.GetInformer(ctx, &tenancyv1alpha1.VirtualCluster{})
	if err != nil {
		return fmt.Errorf("follow VirtualClusters: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { d.set(object) },
		UpdateFunc: func(_, object any) { d.set(object) },
		DeleteFunc: d.remove,
	})
	if err != nil {
		return fmt.Errorf("follow VirtualClusters: %w", err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		d.of.SetComplete()
	}
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			d.of.Close()
			return nil
		case <-ticker.C:
			d.of.Bookmark()
		}
	}
}

func (d *directory) set(object any) {
	if vc, ok := object.(*tenancyv1alpha1.VirtualCluster); ok {
		d.of.Set(vc)
	}
}

func (d *directory) remove(object any) {
	if vc, ok := lastknown.Of[*tenancyv1alpha1.VirtualCluster](object); ok {
		d.of.Remove(vc)
	}
}
