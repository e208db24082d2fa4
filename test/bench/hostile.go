package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// attackers is the number of External tenants that attack at a time.
	attackers = 4
	// endless exceeds the size limit of any response, in bytes.
	endless = 1 << 30
	// attackPolicies and attackValues are the number of policies in an attack
	// by selectors and the number of values in each, just below the limits of a
	// namespace.
	attackPolicies, attackValues = 190, 950
)

// hostile measures how attempts to exhaust shared resources affect other
// tenants, one kind of attack after another.
func (w *world) hostile(ctx context.Context) (err error) {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	base, err := w.newTenant(ctx, virtualCluster("hostile"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.removeTenants(context.WithoutCancel(ctx), []*local.Tenant{base})) }()
	s := &report.Scenario{Name: "hostile", Size: fmt.Sprintf("%d tenants with %d pods, %g a second, beside others that attack",
		len(tenants), w.opts.LightPods, w.opts.Rate)}
	s.Notef("the figures are those of the tenants that do not attack; hostile apiservers run in the process of vc-bench")
	for _, a := range attacks() {
		for run := range w.opts.Runs {
			w.progress.sayf("%s, run %d of %d", a.name, run+1, w.opts.Runs)
			measured, err := w.beset(ctx, a, &siege{world: w, base: base}, ofTenants(tenants))
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			measured.report(s, a.name+": ")
		}
	}
	return w.publish(s)
}

// siege is the origin of attacks.
type siege struct {
	world *world
	// base is a hosted tenant that attacks, or whose apiserver is behind those
	// of the External tenants that attack.
	base *local.Tenant
}

// attack is one way to exhaust shared resources. It starts at once and
// continues until ctx ends.
type attack struct {
	name string
	run  func(ctx context.Context, s *siege) error
}

func attacks() []attack {
	const list, padding = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`, "xxxxxxxxxxxxxxxx"
	const event = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`
	pods := local.Lists("pods")
	return []attack{
		{"alone", func(ctx context.Context, _ *siege) error { <-ctx.Done(); return nil }},
		{"endless lists", answering(pods, local.NoStream(local.Endless(http.StatusOK, list, padding, endless)))},
		{"lists of many items", answering(pods, local.NoStream(local.Endless(http.StatusOK, list, "{},", endless)))},
		{"an event without end", answering(pods, local.Endless(http.StatusOK, event, padding, endless))},
		{"compressed answers", answering(pods, local.NoStream(local.GzipBomb(http.StatusOK, list, padding, endless)))},
		{"a full store", storing},
		{"large selectors", selecting},
	}
}

// beset measures a light load during an attack.
func (w *world) beset(ctx context.Context, a attack, s *siege, others place) (measured stages, err error) {
	attacking, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	var failed error
	work.Go(func() { failed = a.run(attacking, s) })
	measured, err = w.trickle(ctx, others)
	stop()
	work.Wait()
	return measured, errors.Join(err, failed)
}

// answering forges some responses of the External tenants' apiservers, from the
// first one on.
func answering(match local.Match, answer local.Answer) func(context.Context, *siege) error {
	return func(ctx context.Context, s *siege) (err error) {
		apiserver, err := local.NewHostile(s.base.Config)
		if err != nil {
			return err
		}
		defer apiserver.Close()
		apiserver.On(match, answer)
		kubeconfig, err := apiserver.Kubeconfig()
		if err != nil {
			return err
		}
		var all []*local.Tenant
		defer func() { err = errors.Join(err, s.world.removeTenants(context.WithoutCancel(ctx), all)) }()
		for i := range attackers {
			vc, err := s.world.createExternal(ctx, fmt.Sprintf("hostile-%d", i), kubeconfig)
			if err != nil {
				return err
			}
			all = append(all, &local.Tenant{VC: vc})
		}
		<-ctx.Done()
		return nil
	}
}

// storing creates ConfigMaps of a megabyte as fast as the apiserver accepts
// them, and lists all of them.
func storing(ctx context.Context, s *siege) error {
	clients, err := kubernetes.NewForConfig(s.base.Config)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	for range attackers {
		work.Go(func() {
			for ctx.Err() == nil { // retries what is rejected
				large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-"}, Data: map[string]string{"x": strings.Repeat("x", 1_000_000)}}
				_, _ = clients.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, large, metav1.CreateOptions{})
				if body, err := clients.CoreV1().RESTClient().Get().Resource("configmaps").Stream(ctx); err == nil {
					_, _ = io.Copy(io.Discard, body)
					_ = body.Close()
				}
			}
		})
	}
	work.Wait()
	return s.clear(context.WithoutCancel(ctx), &corev1.ConfigMap{})
}

// selecting creates gated pods and policies with large selectors, and keeps
// updating the policies. It retries what is rejected.
func selecting(ctx context.Context, s *siege) error {
	for i := range s.world.opts.AttackPods {
		_ = s.base.Client.Create(ctx, gatedPod(i))
	}
	for n := 0; ctx.Err() == nil; n++ {
		policy := largePolicy(n%attackPolicies, n/attackPolicies)
		if s.base.Client.Create(ctx, policy) != nil {
			_ = s.base.Client.Update(ctx, policy)
		}
	}
	return s.clear(context.WithoutCancel(ctx), &networkingv1.NetworkPolicy{}, &corev1.Pod{})
}

func gatedPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("gated-%d", i), Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/wait"}},
			Containers:      []corev1.Container{{Name: "main", Image: "example/app:1"}},
		},
	}
}

// largePolicy returns a policy with a different selector in each round.
func largePolicy(i, round int) *networkingv1.NetworkPolicy {
	values := make([]string, attackValues)
	for v := range values {
		values[v] = fmt.Sprintf("value-%d-%d", round, v)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("policy-%d", i)},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: values},
		}}},
	}
}

// clear deletes the objects of an attack.
func (s *siege) clear(ctx context.Context, kinds ...client.Object) error {
	errs := make([]error, 0, len(kinds))
	for _, kind := range kinds {
		errs = append(errs, s.base.Client.DeleteAllOf(ctx, kind, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0)))
	}
	return errors.Join(errs...)
}
