package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// standalone is a vc-standalone.
type standalone struct {
	pid    int
	client client.Client
	super  discovery.DiscoveryInterface
}

// measureReady measures the time from the creation of a VirtualCluster until it
// is Ready, for several at once and for one after the other, and the memory of
// vc-standalone, with the syncer and the manager.
func measureReady(ctx context.Context, opts *options, dir string, t *table) error {
	s, end, err := startStandalone(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer end()
	before, err := s.memory(ctx, opts.settle)
	if err != nil {
		return err
	}
	begin := time.Now()
	names := planeNames(opts.atOnce)
	if err := s.createReady(ctx, names...); err != nil {
		return err
	}
	t.add(fmt.Sprintf("VirtualCluster created to Ready, the last of %d at once, %s", opts.atOnce, opts.isolation), "s",
		time.Since(begin).Seconds())
	after, err := s.memory(ctx, opts.settle)
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("memory of a %s tenant with its part of syncer and manager, of %d", opts.isolation, opts.atOnce), "MiB",
		(after-before)/float64(opts.atOnce))
	if err := s.remove(ctx, names...); err != nil {
		return err
	}
	for n := range opts.starts {
		name := fmt.Sprintf("single-%d", n)
		begin := time.Now()
		if err := s.createReady(ctx, name); err != nil {
			return err
		}
		t.add("VirtualCluster created to Ready, "+opts.isolation, "s", time.Since(begin).Seconds())
		if err := s.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// startStandalone starts a vc-standalone. The caller calls end.
func startStandalone(ctx context.Context, opts *options, dir string, flags ...string) (s *standalone, end func(), err error) {
	args := append([]string{"up", "--data-dir", dir, "--port", "0", "--tenant-isolation", opts.isolation}, flags...)
	p, end, err := startReady(ctx, args...)
	if err != nil {
		return nil, nil, err
	}
	s = &standalone{pid: p.PID()}
	if err := s.connect(filepath.Join(dir, superKubeconfig)); err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

func (s *standalone) connect(kubeconfig string) error {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(tenancyv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	if s.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	s.super, err = discovery.NewDiscoveryClientForConfig(config)
	return err
}

// memory collects garbage until the resident memory no longer changes, and
// returns it in MiB.
func (s *standalone) memory(ctx context.Context, settle time.Duration) (mib float64, err error) {
	return settled(ctx, settle, func() (float64, error) {
		if _, err := s.super.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
			return 0, err
		}
		usage, err := measure.UsageOf(s.pid)
		return float64(usage.Resident) / measure.MiB, err
	})
}
