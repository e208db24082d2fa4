package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// shop is the namespace of the measured tenant, listedPods the number of its
	// pods.
	shop       = "shop"
	listedPods = 100
)

// converted measures tenants without a control plane, on a super cluster of their
// own: what they cost, and their requests through a gateway that is a process of
// its own, compared with the same ones of the super cluster.
func (w *world) converted(ctx context.Context) (err error) {
	own, err := w.convertedWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.super.Stop()) }()
	s := &report.Scenario{Name: "converted", Size: fmt.Sprintf("%d tenants at once; %d requests one by one; %d pods of a tenant among %d",
		w.opts.ConvertedTenants, w.opts.GatewayRequests, listedPods, w.opts.ConvertedPods)}
	s.Notef("the gateway, the super cluster with all of the platform, and the clients share the processors")
	g, err := own.startGateway(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	if err := own.convertedRequests(ctx, s, g); err != nil {
		return err
	}
	if err := own.convertedTenants(ctx, s, g); err != nil {
		return err
	}
	if err := own.convertedPolicies(ctx, s, g); err != nil {
		return err
	}
	return w.publish(s)
}

// convertedWorld starts a super cluster with all of the platform, which offers
// converted tenants.
func (w *world) convertedWorld(ctx context.Context) (*world, error) {
	w.progress.sayf("starting a super cluster for converted tenants")
	own := &world{opts: w.opts, results: w.results, progress: w.progress, dir: filepath.Join(w.dir, "converted"), started: true}
	var err error
	if own.super, err = own.controlPlane(ctx, "converted", "--nodes", "2", "--converted-tenants", "--syncer=true"); err != nil {
		return nil, err
	}
	return own, own.super.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mine}})
}

// convertedTenant is a VirtualCluster of a converted tenant, without limits of
// numbers: it has more objects than is usual.
func convertedTenant(name string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: name},
		Spec: tenancyv1alpha1.VirtualClusterSpec{
			Provisioner: tenancyv1alpha1.ProvisionerConverted,
			Policy:      &tenancyv1alpha1.TenantPolicy{Limits: map[string]int64{"*": -1, "pods": -1}},
		},
	}
}

// convertedRequests measures requests of a tenant that has 100 pods, alone and
// among those of another one.
func (w *world) convertedRequests(ctx context.Context, s *report.Scenario, g *gateway) error {
	tenant, err := w.stocked(ctx, "measured", listedPods)
	if err != nil {
		return err
	}
	p, err := g.convertedPair(ctx, w.super, tenant)
	if err != nil {
		return err
	}
	alone := []convertedRequest{
		{name: "get of a pod", path: pods + "/pod-00000"},
		{name: "list of 100 pods", path: pods},
		{name: "create of a ConfigMap", path: "/api/v1/namespaces/%s/configmaps", create: true},
	}
	for run := range w.opts.Runs {
		w.progress.sayf("requests, run %d of %d", run+1, w.opts.Runs)
		for _, each := range alone {
			if err := p.compare(ctx, s, each, w.opts.GatewayRequests); err != nil {
				return err
			}
		}
		if err := g.listCost(ctx, s, p, fmt.Sprintf(pods, shop), "a list of 100 pods", w.opts.GatewayRequests/10); err != nil {
			return err
		}
	}
	if _, err := w.stocked(ctx, "neighbor", w.opts.ConvertedPods-listedPods); err != nil {
		return err
	}
	for run := range w.opts.Runs {
		w.progress.sayf("lists among %d pods, run %d of %d", w.opts.ConvertedPods, run+1, w.opts.Runs)
		if err := g.listCost(ctx, s, p, "/api/v1/pods", "a list of all namespaces' pods, 100 among all", w.opts.GatewayRequests/10); err != nil {
			return err
		}
	}
	return nil
}

// stocked creates a tenant with pods, which no scheduler places.
func (w *world) stocked(ctx context.Context, name string, count int) (*local.Tenant, error) {
	w.progress.sayf("creating a tenant with %d pods", count)
	t, err := w.newTenant(ctx, convertedTenant(name))
	if err != nil {
		return nil, err
	}
	var last error // until the gateway knows the tenant
	err = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		last = t.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("create the namespace of %s: %w", name, errors.Join(err, last))
	}
	if err := awaitObject(ctx, t.Client, client.ObjectKey{Namespace: shop, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
		return nil, err
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(2 * starting)
	for i := range count {
		group.Go(func() error { return t.Client.Create(limited, stockedPod(i)) })
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("create the pods of %s: %w", name, err)
	}
	return t, nil
}

func stockedPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("pod-%05d", i), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/" + mine}},
			Containers:      []corev1.Container{{Name: "web", Image: "example.com/web", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
		},
	}
}

// convertedTenants measures how long tenants take to be ready, one by one and all
// at once, and what they cost when they are idle.
func (w *world) convertedTenants(ctx context.Context, s *report.Scenario, g *gateway) error {
	for i := range w.opts.Runs {
		took, err := w.createConverted(ctx, fmt.Sprintf("one-%d", i), 1)
		if err != nil {
			return err
		}
		s.Add("one VirtualCluster, created to Ready", "s", took.Seconds(), 1).Want("≤ 0.5")
	}
	gatewayBefore, wholeBefore, err := w.convertedMemory(ctx, g)
	if err != nil {
		return err
	}
	count := w.opts.ConvertedTenants
	w.progress.sayf("creating %d tenants at once", count)
	took, err := w.createConverted(ctx, "idle", count)
	if err != nil {
		return err
	}
	s.Add("all at once, created to Ready", "s", took.Seconds(), count)
	gatewayAfter, wholeAfter, err := w.convertedMemory(ctx, g)
	if err != nil {
		return err
	}
	each := func(before, after int) float64 { return float64(after-before) / 1024 / float64(count) }
	s.Add("memory of the gateway for an idle tenant", "KiB", each(gatewayBefore, gatewayAfter), count).Want("≤ 98")
	s.Add("memory of the gateway with all of them", "MiB", float64(gatewayAfter)/measure.MiB, count).Want("≤ 400 with 2,000")
	s.Add("memory of the super cluster with all of the platform for an idle tenant", "KiB", each(wholeBefore, wholeAfter), count)
	return nil
}

// createConverted creates tenants at once, and returns the time until all are
// ready.
func (w *world) createConverted(ctx context.Context, name string, count int) (time.Duration, error) {
	began := time.Now()
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(50)
	for i := range count {
		group.Go(func() error {
			_, err := w.newTenant(limited, convertedTenant(fmt.Sprintf("%s-%04d", name, i)))
			return err
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// convertedMemory returns the memory of the gateway and of the super cluster's
// process, after the garbage of the latter was collected.
func (w *world) convertedMemory(ctx context.Context, g *gateway) (ofGateway, whole int, err error) {
	if err := pause(ctx, time.Now().Add(w.opts.Settle)); err != nil {
		return 0, 0, err
	}
	if err := w.collectGarbage(ctx); err != nil {
		return 0, 0, err
	}
	usage, err := g.usage()
	if err != nil {
		return 0, 0, err
	}
	all, err := measure.UsageOf(w.super.PID())
	return usage.Resident, all.Resident, err
}
