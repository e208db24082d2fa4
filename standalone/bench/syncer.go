package bench

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	syncer "github.com/virtualcluster/virtualcluster/syncer/app"
)

// superKubeconfig is the file with the super cluster's kubeconfig.
const superKubeconfig = "super.kubeconfig"

// measureSyncer measures what an idle tenant takes in the syncer, a process of
// its own, which is started again with the tenants.
func measureSyncer(ctx context.Context, opts *options, dir string, t *table) error {
	s, end, err := startStandalone(ctx, opts, dir, "--syncer=false", "--agent=false")
	if err != nil {
		return err
	}
	defer end()
	few, err := s.syncerCost(ctx, opts, dir, "first")
	if err != nil {
		return err
	}
	many, err := s.syncerCost(ctx, opts, dir, append(planeNames(opts.tenants), "first")...)
	if err != nil {
		return err
	}
	each := func(v float64) float64 { return v / float64(opts.tenants) }
	of := fmt.Sprintf("an idle %s tenant in the syncer, of %d", opts.isolation, opts.tenants)
	t.add("memory of "+of, "MiB", each(many.mib-few.mib))
	t.add("goroutines of "+of, "", each(many.goroutines-few.goroutines))
	return nil
}

// syncerCost creates those of the VirtualClusters that do not exist, and
// returns what a syncer uses that syncs all of them.
func (s *standalone) syncerCost(ctx context.Context, opts *options, dir string, names ...string) (cost, error) {
	p, end, err := startReady(ctx, syncerChild, filepath.Join(dir, superKubeconfig))
	if err != nil {
		return cost{}, err
	}
	defer end()
	for _, name := range names {
		if err := client.IgnoreAlreadyExists(s.client.Create(ctx, virtualCluster(name))); err != nil {
			return cost{}, err
		}
	}
	if err := s.await(ctx, "synced", hasCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionTrue), names...); err != nil {
		return cost{}, err
	}
	_, address, _ := strings.Cut(p.Output(), "ready ")
	return (&hostClient{process: p, address: address, settle: opts.settle, profiles: opts.profiles}).cost(ctx)
}

// serveSyncer runs a syncer in this process until ctx ends, and serves the
// collection of its garbage.
func serveSyncer(ctx context.Context, kubeconfig string) error {
	mux := http.NewServeMux()
	handleMemory(mux)
	serve, err := listen(ctx, mux)
	if err != nil {
		return err
	}
	go func() { _ = serve() }() // until ctx ends
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	options := syncer.DefaultOptions()
	options.Options = component.Defaults()
	options.MetricsBindAddress, options.HealthProbeBindAddress, options.LeaderElect = "0", "0", false
	return syncer.Run(ctx, config, options)
}
