package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// byName is a validator that acts on the name of a pod: it rejects held pods
// until it opens, and fails for others.
type byName struct {
	plugins.TenantLocks

	env   plugins.Environment
	open  atomic.Bool
	gate  chan struct{} // closed to admit pods whose name begins with wait
	asked atomic.Int64
	last  atomic.Pointer[plugins.Request]
}

func (v *byName) registration() plugins.Registration {
	return plugins.Registration{ID: "by-name", InitFn: func(env plugins.Environment) (plugins.Validator, error) {
		v.env = env
		return v, nil
	}}
}

func (v *byName) Name() string                        { return "by-name" }
func (v *byName) Kinds() []schema.GroupKind           { return []schema.GroupKind{{Kind: "Pod"}} }
func (v *byName) Locker(tenant string) plugins.Locker { return v.Of(tenant) }

func (v *byName) Validate(ctx context.Context, r plugins.Request) error {
	v.asked.Add(1)
	v.last.Store(&r)
	how, _, _ := strings.Cut(r.Object.GetName(), "-")
	switch {
	case how == "held" && !v.open.Load():
		return plugins.Reject("pods of tenant %s: used 1, asked 1, hard 1", r.Tenant.Key)
	case how == "panic":
		panic("no such pod")
	case how == "hang":
		time.Sleep(kit.Soon) // a validator that ignores its context
	case how == "wait":
		select {
		case <-v.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// withValidator runs the syncer with a validator during a container of specs.
func withValidator(v *byName, change ...func(*app.Options)) {
	BeforeAll(func() {
		useSyncer(account, append([]func(*app.Options){func(o *app.Options) {
			o.QuotaValidation, o.Plugins, o.QuotaValidators = true, []plugins.Registration{v.registration()}, []string{"by-name"}
			// A busy machine may delay an answer by more than half a second.
			o.QuotaValidationTimeout = 3 * time.Second
		}}, change...)...)
	})
}

// heldBack returns the reason and message of why a pod is pending; empty
// without one.
func heldBack(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// warnings returns the warnings about an object, as reason and message.
func warnings(ctx context.Context, c client.Client, about client.Object) []string {
	events := &corev1.EventList{}
	if err := c.List(ctx, events, client.InNamespace(about.GetNamespace())); err != nil {
		return nil
	}
	var all []string
	for _, e := range events.Items {
		if e.InvolvedObject.UID == about.GetUID() && e.Type == corev1.EventTypeWarning {
			all = append(all, e.Reason+": "+e.Message)
		}
	}
	return all
}

var _ = Describe("A validator", Ordered, func() {
	const ns = "limited"
	v := &byName{}
	var red *local.Tenant
	withValidator(v, func(o *app.Options) { o.Patrol = noPatrol }) // which validates rejected objects again

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
	})

	It("validates the copy, with the super cluster's names (QV-10)", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, kit.Pod(ns, "free"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("free"))
		asked := v.last.Load()
		Expect(asked.Object.GetNamespace()).To(Equal(red.Super(ns)))
		Expect(plugins.TenantOf(asked.Object)).To(Equal(red.Key()))
		Expect(asked.Tenant.UID).To(Equal(red.VC.UID))
		Expect(asked.Was).To(BeNil())
	})

	It("keeps a pod pending with a reason, and is not called repeatedly (QV-9, QV-11)", func(ctx SpecContext) {
		held, before := kit.Pod(ns, "held-back"), v.asked.Load()
		kit.Create(ctx, red.Client, held)
		const why = "QuotaExceeded: cannot create pod due to exceeding quota limit: pods of tenant "
		Eventually(kit.Read(ctx, red.Client, held)).Should(WithTransform(heldBack, HavePrefix(why)))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, held).Should(ConsistOf(HavePrefix(why)))
		Expect(warnings(ctx, red.Client, held)[0]).NotTo(ContainSubstring(red.Key()))
		// The condition is a change of the pod, after which it is validated once more.
		Consistently(v.asked.Load).Should(BeNumerically("<=", before+2))
		Expect(must(kit.Read(ctx, red.Client, held)()).Status.Phase).To(Equal(corev1.PodPending))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, held))).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(syncer.Metric("vc_syncer_pending_objects", map[string]string{"kind": "Pod", "outcome": "rejected"})).To(BeEquivalentTo(1))
	})

	It("retries it when something has changed", func(ctx SpecContext) {
		v.open.Store(true)
		v.env.Retry(red.Key())
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("free", "held-back"))
		Expect(heldBack(must(kit.Read(ctx, red.Client, kit.Pod(ns, "held-back"))()))).To(BeEmpty())
		Expect(syncer.Metric("vc_syncer_pending_objects", map[string]string{"outcome": "rejected"})).To(BeZero())
	})

	It("that panics or hangs blocks only its pod, and an event tells the tenant that it is not at fault", func(ctx SpecContext) {
		blue := tenant(ctx)
		broken := []*corev1.Pod{kit.Pod(ns, "panic-at-once"), kit.Pod(ns, "hang-for-long")}
		for _, p := range broken {
			kit.Create(ctx, red.Client, p)
			Eventually(warnings).WithContext(ctx).WithArguments(red.Client, p).Should(
				ContainElement(HavePrefix("SyncRejected: it cannot be checked whether the limits allow this, because validator by-name does not work")))
			Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, p))).To(MatchError(apierrors.IsNotFound, "not found"))
		}
		kit.Create(ctx, blue.Client, kit.Namespace(ns), kit.Pod(ns, "free"))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(ConsistOf("free"))
		for _, result := range []string{"panic", "timeout"} {
			Expect(syncer.Metric("vc_syncer_validations_total", map[string]string{"plugin": "by-name", "result": result})).NotTo(BeZero())
		}
	})
})

var _ = Describe("A validator with patrol rounds", Ordered, func() {
	const ns = "limited"
	v := &byName{}
	withValidator(v, func(o *app.Options) { o.Patrol = time.Second })

	It("validates rejected objects again (QV-9)", func(ctx SpecContext) {
		red := tenant(ctx)
		held := kit.Pod(ns, "held-back")
		kit.Create(ctx, red.Client, kit.Namespace(ns), held)
		Eventually(kit.Read(ctx, red.Client, held)).Should(WithTransform(heldBack, Not(BeEmpty())))
		v.open.Store(true)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("held-back"))
		Expect(syncer.Metric("vc_syncer_patrol_findings_total", map[string]string{"kind": "Pod"})).To(BeZero())
	})
})

var _ = Describe("A validator that is slow for one tenant", Ordered, func() {
	const ns = "limited"
	v := &byName{gate: make(chan struct{})}
	withValidator(v, func(o *app.Options) {
		o.Workers, o.TenantCap, o.Timeout, o.QuotaValidationTimeout = 2, 2, 2*time.Minute, time.Minute
	})

	It("occupies no worker that others need, whatever the number of waiting pods (QV-8)", func(ctx SpecContext) {
		red, blue := tenant(ctx), tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.Create(ctx, blue.Client, kit.Namespace(ns))
		for i := range 20 {
			kit.Create(ctx, red.Client, kit.Pod(ns, fmt.Sprintf("wait-%d", i)))
		}
		Eventually(v.asked.Load).Should(BeEquivalentTo(1))
		for i := range 5 {
			kit.Create(ctx, blue.Client, kit.Pod(ns, fmt.Sprintf("free-%d", i)))
		}
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(HaveLen(5))
		Expect(below(ctx, red)()).To(BeZero(), "the first of them is still being validated")
		close(v.gate)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(20))
	})
})

var _ = Describe("A validator that may fail", Ordered, func() {
	v := &byName{}
	withValidator(v, func(o *app.Options) { o.QuotaValidationFailOpen = true })

	It("admits objects when it fails, and still blocks what it rejects", func(ctx SpecContext) {
		red := tenant(ctx)
		held := kit.Pod("limited", "held-back")
		kit.Create(ctx, red.Client, kit.Namespace("limited"), held)
		Eventually(kit.Read(ctx, red.Client, held)).Should(WithTransform(heldBack, Not(BeEmpty())))
		kit.Create(ctx, red.Client, kit.Pod("limited", "panic-at-once"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "limited").Should(ConsistOf("panic-at-once"))
		// A validator that hangs is not asked for the tenant again.
		kit.Create(ctx, red.Client, kit.Pod("limited", "hang-for-long"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "limited").Should(ConsistOf("panic-at-once", "hang-for-long"))
		Expect(must(kit.Read(ctx, red.Client, held)()).Status.Phase).To(Equal(corev1.PodPending))
		for _, result := range []string{"panic", "timeout"} {
			Expect(syncer.Metric("vc_syncer_validations_total", map[string]string{"plugin": "by-name", "result": result})).NotTo(BeZero())
		}
	})
})

var _ = Describe("Without validation", Ordered, func() {
	It("calls no plugin (QV-6)", func(ctx SpecContext) {
		v := &byName{}
		useSyncer(account, func(o *app.Options) { o.Plugins = []plugins.Registration{v.registration()} })
		red := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace("free"), kit.Pod("free", "held-back"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "free").Should(ConsistOf("held-back"))
		Expect(v.env.Cache).To(BeNil())
		Expect(v.asked.Load()).To(BeZero())
	})
})
