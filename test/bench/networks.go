package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// networksEach is the number of networks of each of many tenants.
	networksEach = 3
	// glance is the interval at which a network and the copy of its first pod are
	// read.
	glance = 5 * time.Millisecond
)

// networkFlags turn networks on, with the ranges of an installation.
func networkFlags() []string {
	return []string{"--networks", "--pod-cidr=10.244.0.0/16", "--internal-cidr=192.168.0.0/16"}
}

// networks measures how soon a pod runs on a new network, and what networks cost
// the super cluster and the processes that serve them, in one tenant and in many.
func (w *world) networks(ctx context.Context) (err error) {
	s := &report.Scenario{
		Name: "networks", Size: fmt.Sprintf("%d networks in one tenant, %d in each of %d", w.opts.Networks, networksEach, w.opts.NetworkTenants),
	}
	s.Notef("flat networks beside the default one, each with a pod; networks of a tenant are created one by one, of %d tenants at a time, "+
		"and read every %s", starting, glance)
	defer func() { err = errors.Join(err, w.restartSyncer(context.WithoutCancel(ctx))) }()
	few, err := w.networksOf(ctx, s, "one tenant", 1, w.opts.Networks)
	if err == nil {
		err = w.networkNeverReady(ctx, s, few[0])
	}
	if err = errors.Join(err, w.removeTenants(ctx, few)); err != nil {
		return err
	}
	many, err := w.networksOf(ctx, s, fmt.Sprintf("%d tenants", w.opts.NetworkTenants), w.opts.NetworkTenants, networksEach)
	return errors.Join(err, w.publish(s), w.removeTenants(ctx, many)) // in this order: the deletion of many takes minutes
}

// networksOf measures a number of networks of each of a number of tenants, which
// it returns.
func (w *world) networksOf(ctx context.Context, s *report.Scenario, of string, tenants, each int) ([]*local.Tenant, error) {
	made, err := w.emptyTenants(ctx, "networks", 0, tenants)
	if err != nil {
		return nil, err
	}
	return made, w.measureNetworks(ctx, s, of, made, each)
}

func (w *world) measureNetworks(ctx context.Context, s *report.Scenario, of string, made []*local.Tenant, each int) error {
	if err := w.withNetworks(ctx, made); err != nil {
		return err
	}
	if err := w.countPolicies(ctx, s, made[0], "with its default network"); err != nil {
		return err
	}
	w.progress.sayf("creating networks of %s, %d each", of, each)
	if err := w.createNetworks(ctx, s, of, made, each); err != nil {
		return err
	}
	if err := w.countPolicies(ctx, s, made[0], fmt.Sprintf("with %d networks", each)); err != nil {
		return err
	}
	size := fmt.Sprintf("%s with %d pods", of, each)
	for range w.opts.Runs {
		if err := w.memoryOf(ctx, s, size+", without networks", len(made)); err != nil {
			return err
		}
		if err := w.memoryOf(ctx, s, size+", each on a network", len(made), networkFlags()...); err != nil {
			return err
		}
		if err := w.memoryBeside(ctx, s, size+", each on a network"); err != nil {
			return err
		}
	}
	return nil
}

// withNetworks starts a syncer with networks, and waits until tenants have their
// default one.
func (w *world) withNetworks(ctx context.Context, tenants []*local.Tenant) error {
	if err := w.restartSyncer(ctx, networkFlags()...); err != nil {
		return err
	}
	if _, err := w.settleReady(ctx, len(tenants)); err != nil {
		return err
	}
	for _, t := range tenants {
		for key, obj := range map[client.ObjectKey]client.Object{
			{Name: "default"}: &networkv1.Network{},
			{Namespace: metav1.NamespaceDefault, Name: "default"}: &corev1.ServiceAccount{},
		} {
			if err := awaitObject(ctx, t.Client, key, obj); err != nil {
				return err
			}
		}
	}
	return nil
}

// delays has how long networks took until they were ready, and until their first
// pods had copies.
type delays struct{ ready, used []time.Duration }

// createNetworks creates networks of tenants, each with a pod, and adds how long
// they take.
func (w *world) createNetworks(ctx context.Context, s *report.Scenario, of string, tenants []*local.Tenant, each int) error {
	took := make([]delays, len(tenants))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(starting)
	for i, t := range tenants {
		group.Go(func() (err error) {
			took[i], err = w.createNetworksOf(ctx, t, "network", each)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var all delays
	for _, one := range took {
		all = delays{append(all.ready, one.ready...), append(all.used, one.used...)}
	}
	s.AddLatency(fmt.Sprintf("network of %s created to Ready", of), all.ready)
	s.AddLatency(fmt.Sprintf("network of %s and its first pod created, to the policies and the copy", of), all.used)
	return nil
}

// createNetworksOf creates networks of a tenant with a name and numbers, one after
// the other.
func (w *world) createNetworksOf(ctx context.Context, t *local.Tenant, prefix string, count int) (took delays, err error) {
	for i := range count {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		began := time.Now()
		if err := errors.Join(t.Client.Create(ctx, flatNetwork(name)), t.Client.Create(ctx, podOn(name))); err != nil {
			return took, fmt.Errorf("create a network and its first pod: %w", err)
		}
		if err := awaitReady(ctx, t, name); err != nil {
			return took, err
		}
		took.ready = append(took.ready, time.Since(began))
		if err := w.awaitApart(ctx, t, name); err != nil {
			return took, err
		}
		took.used = append(took.used, time.Since(began))
	}
	return took, nil
}

func flatNetwork(name string) *networkv1.Network {
	return &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkv1.NetworkSpec{Type: networkv1.TypeFlat}}
}

// podOn returns a pod on a network, with its name.
func podOn(network string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: network, Labels: map[string]string{networkv1.Label: network}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:1"}},
		},
	}
}

// awaitReady waits until a network is ready.
func awaitReady(ctx context.Context, t *local.Tenant, name string) error {
	n := &networkv1.Network{}
	err := wait.PollUntilContextTimeout(ctx, glance, patience, true, func(ctx context.Context) (bool, error) {
		err := t.Client.Get(ctx, client.ObjectKey{Name: name}, n)
		return n.Status.Phase == networkv1.PhaseReady, err
	})
	if err != nil {
		return fmt.Errorf("wait for network %s, which is %s: %w", name, n.Status.Phase, err)
	}
	return nil
}

// awaitApart waits until the first pod of a network has a copy, and checks that
// its policies were there before.
func (w *world) awaitApart(ctx context.Context, t *local.Tenant, network string) error {
	key := client.ObjectKey{Namespace: t.Super(metav1.NamespaceDefault), Name: network}
	err := wait.PollUntilContextTimeout(ctx, glance, patience, true, func(ctx context.Context) (bool, error) {
		err := w.super.Client.Get(ctx, key, &corev1.Pod{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the copy of pod %s: %w", network, err)
	}
	key.Name = network + names.NetworkEgressPolicy
	if err := w.super.Client.Get(ctx, key, &networkingv1.NetworkPolicy{}); err != nil {
		return fmt.Errorf("the first pod of network %s has a copy without its policy: %w", network, err)
	}
	return nil
}

// countPolicies adds how many NetworkPolicies, selectors and ranges the super
// cluster has for a tenant, and for each of its networks that has pods.
func (w *world) countPolicies(ctx context.Context, s *report.Scenario, t *local.Tenant, with string) error {
	found := &networkingv1.NetworkPolicyList{}
	if err := w.super.Client.List(ctx, found); err != nil {
		return fmt.Errorf("list NetworkPolicies: %w", err)
	}
	var all, each tally
	for i := range found.Items {
		p := &found.Items[i]
		if !strings.HasPrefix(p.Namespace, t.Key()+"-") {
			continue
		}
		all.add(p)
		if strings.HasSuffix(p.Name, names.NetworkEgressPolicy) {
			each.add(p)
		}
	}
	all.report(s, "a tenant "+with, 1)
	if each.policies > 0 {
		each.report(s, "a network with pods in one namespace", float64(each.policies))
	}
	return nil
}

// tally counts what a network of the super cluster has to enforce.
type tally struct{ policies, selectors, ranges int }

// add counts a policy: the selector of its pods, and its peers.
func (t *tally) add(p *networkingv1.NetworkPolicy) {
	t.policies++
	t.selectors++
	var peers []networkingv1.NetworkPolicyPeer
	for _, rule := range p.Spec.Egress {
		peers = append(peers, rule.To...)
	}
	for _, rule := range p.Spec.Ingress {
		peers = append(peers, rule.From...)
	}
	for _, peer := range peers {
		if peer.IPBlock != nil {
			t.ranges++
		} else {
			t.selectors++
		}
	}
}

func (t *tally) report(s *report.Scenario, of string, share float64) {
	s.Add("policies for "+of, "", float64(t.policies)/share, 1)
	s.Add("selectors for "+of, "", float64(t.selectors)/share, 1)
	s.Add("ranges for "+of, "", float64(t.ranges)/share, 1)
}

// memoryOf starts a syncer, and adds the memory that it has when it has nothing
// to do.
func (w *world) memoryOf(ctx context.Context, s *report.Scenario, name string, tenants int, args ...string) error {
	w.progress.sayf("memory: %s", name)
	if err := w.restartSyncer(ctx, args...); err != nil {
		return err
	}
	before, err := w.settleReady(ctx, tenants)
	if err != nil {
		return err
	}
	during, err := w.stretch(ctx, before)
	if err != nil {
		return err
	}
	s.Add("memory of vc-syncer, "+name, "MiB", float64(during.end.Resident)/measure.MiB, 1)
	s.Add("watches, "+name, "", during.end.Watches, 1)
	return nil
}
