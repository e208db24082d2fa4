package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// rivals returns the tenants of the oracle. One name begins the other.
func rivals() []string { return []string{"red", "red1"} }

// runRivals runs the suite in two tenants at once. It fails if the oracle finds
// a request that reaches another tenant, or if a spec passes in one tenant only.
func runRivals(ctx context.Context, opts *options, out console) (err error) {
	specs, err := chooseSpecs(ctx, opts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(opts.results, 0o750); err != nil {
		return err
	}
	c, err := startRivals(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.super.Stop(), os.RemoveAll(c.dir)) }() // the oracle's verdict is the exit code
	for _, name := range rivals() {
		if err := c.makeRival(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	reports, err := c.runAtOnce(ctx, specs, out)
	if err != nil {
		return err
	}
	return compareRivals(reports, out)
}

func startRivals(ctx context.Context, opts *options) (*clusters, error) {
	dir, err := os.MkdirTemp("", "vc-rivals-")
	if err != nil {
		return nil, err
	}
	super, err := local.StartBinary(ctx, filepath.Join(opts.binaries, "vc-standalone-oracle"), dir,
		"--tenant-isolation", string(tenancyv1alpha1.IsolationShared), "--unsafe-no-fsync")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &clusters{opts: opts, dir: dir, super: super}, nil
}

// makeRival makes a tenant and writes its kubeconfig.
func (c *clusters) makeRival(ctx context.Context, name string) error {
	made, err := c.super.NewTenant(ctx, &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       tenants()[shared],
	})
	if err != nil {
		return err
	}
	if err := showNode(ctx, made); err != nil {
		return err
	}
	config, err := c.userKubeconfig(ctx, made)
	if err != nil {
		return err
	}
	return os.WriteFile(c.kubeconfig(name), config, 0o600)
}

// showNode runs a pod. The suite does not start in a cluster without nodes, and
// a tenant has those of its pods.
func showNode(ctx context.Context, t *local.Tenant) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "shows-a-node"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
	}
	return wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		// The service account of a new namespace may be missing at first.
		if err := t.Client.Create(ctx, pod.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		nodes := &corev1.NodeList{}
		err := t.Client.List(ctx, nodes)
		return len(nodes.Items) > 0, err
	})
}

// runAtOnce runs the same specs in all rivals.
func (c *clusters) runAtOnce(ctx context.Context, specs []spec, out console) (map[string]types.Report, error) {
	var (
		mu      sync.Mutex
		running sync.WaitGroup
		errs    []error
		reports = map[string]types.Report{}
	)
	for _, name := range rivals() {
		running.Go(func() {
			report, err := c.suite(name).run(ctx, specs, out)
			mu.Lock()
			defer mu.Unlock()
			reports[name] = report
			errs = append(errs, err)
		})
	}
	running.Wait()
	return reports, errors.Join(errs...)
}

// compareRivals returns an error if a spec has different results in the rivals.
func compareRivals(reports map[string]types.Report, out console) error {
	passed, ran := map[string]int{}, map[string]int{}
	for _, name := range rivals() {
		number := 0
		for _, r := range reports[name].SpecReports {
			ran[r.FullText()]++
			if r.State.Is(types.SpecStatePassed) {
				passed[r.FullText()]++
				number++
			}
		}
		out.sayf("%s: %d of %d specs passed", name, number, len(reports[name].SpecReports))
	}
	var different []string
	for spec, n := range ran {
		if passed[spec] != 0 && passed[spec] != n {
			different = append(different, spec)
		}
	}
	if len(different) > 0 {
		return fmt.Errorf("%d specs passed in one tenant only:\n%s", len(different), strings.Join(different, "\n"))
	}
	return nil
}
