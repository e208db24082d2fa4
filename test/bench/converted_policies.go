package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// guarded is the most tenants with a policy that are measured.
const guarded = 50

// convertedPolicies measures what a policy of its own costs a tenant: it has the
// gateway evaluate admission for the tenant. The super cluster calls the gateway
// that is a part of its process, so that the figures are of all of that.
func (w *world) convertedPolicies(ctx context.Context, s *report.Scenario, g *gateway) error {
	tenants, err := w.guardedTenants(ctx)
	if err != nil {
		return err
	}
	if err := w.writes(ctx, s, tenants[0], "without a policy"); err != nil {
		return err
	}
	memoryBefore, cpuBefore, err := w.atRest(ctx, g)
	if err != nil {
		return err
	}
	w.progress.sayf("giving %d tenants a policy each", len(tenants))
	for _, t := range tenants {
		if err := guard(ctx, t); err != nil {
			return err
		}
	}
	memoryAfter, cpuAfter, err := w.atRest(ctx, g)
	if err != nil {
		return err
	}
	count := float64(len(tenants))
	s.Add("memory of the super cluster with all of the platform for a tenant's policy", "KiB",
		float64(memoryAfter-memoryBefore)/1024/count, len(tenants))
	s.Add("processor time a second of the same for it, idle", "ms", (cpuAfter-cpuBefore)/count, len(tenants))
	return w.writes(ctx, s, tenants[0], "with a policy")
}

// guardedTenants creates tenants that are to have a policy, and waits until they
// are served.
func (w *world) guardedTenants(ctx context.Context) ([]*local.Tenant, error) {
	tenants := make([]*local.Tenant, min(guarded, w.opts.ConvertedTenants))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(starting)
	for i := range tenants {
		group.Go(func() (err error) {
			tenants[i], err = w.newTenant(limited, convertedTenant(fmt.Sprintf("guarded-%03d", i)))
			if err != nil {
				return err
			}
			return wait.PollUntilContextTimeout(limited, poll, patience, true, func(ctx context.Context) (bool, error) {
				return tenants[i].Client.Create(ctx, checked(nil)) == nil, nil
			})
		})
	}
	return tenants, group.Wait()
}

// checked is a ConfigMap that the policies decide about.
func checked(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: mine}, Data: data}
}

// writes measures creations one by one.
func (w *world) writes(ctx context.Context, s *report.Scenario, t *local.Tenant, how string) error {
	before, err := measure.UsageOf(w.super.PID())
	if err != nil {
		return err
	}
	var times []time.Duration
	for range w.opts.GatewayRequests {
		began := time.Now()
		if err := t.Client.Create(ctx, checked(nil)); err != nil {
			return fmt.Errorf("create a ConfigMap of %s: %w", t.Key(), err)
		}
		times = append(times, time.Since(began))
	}
	after, err := measure.UsageOf(w.super.PID())
	if err != nil {
		return err
	}
	s.AddLatency("create of a ConfigMap, "+how, times)
	s.Add("processor time of the super cluster with all of the platform for it, "+how, "ms",
		measure.Milliseconds(after.CPU-before.CPU)/float64(len(times)), len(times))
	return nil
}

// atRest returns the memory of the super cluster's process after a collection, and
// its processor time in milliseconds a second while nothing is requested.
func (w *world) atRest(ctx context.Context, g *gateway) (memory int, cpu float64, err error) {
	if _, memory, err = w.convertedMemory(ctx, g); err != nil {
		return 0, 0, err
	}
	before, err := measure.UsageOf(w.super.PID())
	if err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, time.Now().Add(w.opts.IdleWindow)); err != nil {
		return 0, 0, err
	}
	after, err := measure.UsageOf(w.super.PID())
	return memory, measure.Milliseconds(after.CPU-before.CPU) / w.opts.IdleWindow.Seconds(), err
}

// guard gives a tenant a policy, and waits until it has an effect.
func guard(ctx context.Context, t *local.Tenant) error {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: mine}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "!has(object.data)"}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta}
	binding.Spec.PolicyName = policy.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	for _, object := range []client.Object{policy, binding} {
		if err := t.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("give %s a policy: %w", t.Key(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		return t.Client.Create(ctx, checked(map[string]string{"a": "b"}), client.DryRunAll) != nil, nil
	})
}
