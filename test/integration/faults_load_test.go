package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// rush is the interval between changes of a load.
	rush = 100 * time.Millisecond
	// few and many are the minimum and maximum number of objects of a kind in a
	// load. The first few pods stay throughout.
	few, many = 5, 12
	// scaled is the Deployment of a load.
	scaled = "scaled"
)

// load is a busy tenant: it creates, updates, scales and deletes, and knows
// which objects must exist in the end.
type load struct {
	tenant   *local.Tenant
	ns       string
	random   *rand.Rand
	number   int // of the next object or change
	kinds    []*things
	pods     *things
	replicas int32
	// steady has the copies of the pods that stay.
	steady map[string]types.UID

	stop chan struct{}
	done chan error
	over sync.Once
}

// things are objects of one kind.
type things struct {
	fresh func(name string) client.Object
	// patch changes an object; %d stands for a number that changes each time.
	patch string
	// there has the objects that must exist.
	there map[string]types.UID
}

// newLoad creates the initial objects of a load, and waits until they run. Its
// changes depend on Ginkgo's seed, which is printed.
func newLoad(ctx context.Context, t *local.Tenant, ns string) *load {
	GinkgoHelper()
	offerCertified(ctx)
	l := &load{
		tenant: t, ns: ns, replicas: 3, steady: map[string]types.UID{},
		random: rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(len(ns)))),
	}
	configMaps := l.add(func(name string) client.Object { return configMap(ns, name, nil) }, `{"data": {"round": "%d"}}`)
	secrets := l.add(func(name string) client.Object { return secret(ns, name, nil) }, `{"stringData": {"round": "%d"}}`)
	l.add(func(name string) client.Object { return service(ns, name) },
		`{"metadata": {"labels": {"round": "%d"}}, "spec": {"selector": {"round": "%[1]d"}}}`)
	l.add(func(name string) client.Object { return withCertificate(ns, name, l.pick(secrets)) },
		`{"spec": {"defaultBackend": {"service": {"name": "n%d", "port": {"number": 80}}}}}`)
	l.pods = l.add(func(name string) client.Object {
		return kit.Pod(ns, name, withConfigMap(l.pick(configMaps)), withSecret(l.pick(secrets)))
	}, `{"metadata": {"labels": {"round": "%d"}}, "spec": {"containers": [{"name": "main", "image": "example/app:%[1]d"}]}}`)

	kit.Create(ctx, t.Client, kit.Namespace(ns), deployment(ns, scaled, l.replicas))
	// Without it, admission rejects pods. A busy machine takes a while.
	kit.ShouldExist(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})
	for _, of := range l.kinds {
		for range few {
			Expect(l.create(ctx, of)).To(Succeed())
		}
	}
	Eventually(running).WithContext(ctx).WithArguments(t.Client, ns).WithTimeout(recovery).Should(HaveLen(few + int(l.replicas)))
	for name := range l.pods.there {
		l.steady[name] = must(kit.Read(ctx, super.Client, kit.SuperOf(t, kit.Pod(ns, name)))()).UID
	}
	return l
}

// certified is the class of ingresses with certificates.
const certified = "certified"

// offerCertified offers that class to all tenants until the spec ends, once.
func offerCertified(ctx context.Context) {
	GinkgoHelper()
	if err := kit.Get(ctx, super.Client, ingressClass(certified)); apierrors.IsNotFound(err) {
		offerPublicly(ctx, ingressClass(certified))
	}
}

// withCertificate returns an Ingress of that class with a certificate.
func withCertificate(ns, name, certificate string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: networkingv1.IngressSpec{
			IngressClassName: new(certified),
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: name, Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
			TLS: []networkingv1.IngressTLS{{SecretName: certificate}},
		},
	}
}

func (l *load) add(fresh func(name string) client.Object, patch string) *things {
	of := &things{fresh: fresh, patch: patch, there: map[string]types.UID{}}
	l.kinds = append(l.kinds, of)
	return of
}

// start runs the load until end.
func (l *load) start(ctx context.Context) {
	l.stop, l.done = make(chan struct{}), make(chan error, 1)
	go func() { l.done <- l.work(context.WithoutCancel(ctx)) }()
}

func (l *load) work(ctx context.Context) error {
	ticker := time.NewTicker(rush)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return nil
		case <-ticker.C:
		}
		if err := l.change(ctx); err != nil {
			return err
		}
	}
}

// end waits until the load has finished its current change. It is idempotent.
func (l *load) end() {
	GinkgoHelper()
	l.over.Do(func() {
		if l.stop == nil {
			return // never started
		}
		close(l.stop)
		Expect(<-l.done).To(Succeed(), "the tenant itself always reaches its apiserver")
	})
}

// changes makes several changes, one after the other.
func (l *load) changes(ctx context.Context, n int) {
	GinkgoHelper()
	for range n {
		Expect(l.change(ctx)).To(Succeed())
	}
}

// change makes one change.
func (l *load) change(ctx context.Context) error {
	of := l.kinds[l.random.IntN(len(l.kinds))]
	switch l.random.IntN(5) {
	case 0:
		return l.scale(ctx)
	case 1:
		return l.remove(ctx, of)
	case 2:
		return l.edit(ctx, of)
	}
	return l.create(ctx, of)
}

// create creates an object with a new name, unless there are enough.
func (l *load) create(ctx context.Context, of *things) error {
	if len(of.there) >= many {
		return l.edit(ctx, of)
	}
	l.number++
	obj := of.fresh(fmt.Sprintf("x%d", l.number))
	if err := l.tenant.Client.Create(ctx, obj); err != nil {
		return err
	}
	of.there[obj.GetName()] = obj.GetUID()
	return nil
}

// remove deletes one of the objects, except steady pods.
func (l *load) remove(ctx context.Context, of *things) error {
	name := l.pick(of)
	if _, stays := l.steady[name]; stays || len(of.there) <= few {
		return nil
	}
	delete(of.there, name)
	return l.tenant.Client.Delete(ctx, of.fresh(name))
}

// edit changes one of the objects.
func (l *load) edit(ctx context.Context, of *things) error {
	l.number++
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, of.patch, l.number))
	return l.tenant.Client.Patch(ctx, of.fresh(l.pick(of)), patch)
}

// scale scales the Deployment, whose pods the tenant's controllers create and
// delete.
func (l *load) scale(ctx context.Context) error {
	l.replicas = l.random.Int32N(2 * few)
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, l.replicas)
	return l.tenant.Client.Patch(ctx, deployment(l.ns, scaled, 0), client.RawPatch(types.MergePatchType, patch))
}

// pick returns the name of one of the objects.
func (l *load) pick(of *things) string {
	return slices.Sorted(maps.Keys(of.there))[l.random.IntN(len(of.there))]
}

// shouldBeWhole waits until both sides agree, and checks that nothing was lost
// or duplicated.
func (l *load) shouldBeWhole(ctx context.Context, copies *local.Copies) {
	GinkgoHelper()
	began, last := time.Now(), []string(nil)
	Eventually(func(ctx context.Context) ([]string, error) {
		found, err := super.Differences(ctx, l.tenant)
		if len(found) > 0 {
			last = found
		}
		return found, err
	}).WithContext(ctx).WithTimeout(recovery).WithPolling(10 * kit.Poll).Should(BeEmpty())
	AddReportEntry(fmt.Sprintf("%s: equal after %s, last of all", l.tenant.Key(), time.Since(began).Round(time.Millisecond)), last)
	Eventually(running).WithContext(ctx).WithArguments(l.tenant.Client, l.ns).Should(HaveLen(len(l.pods.there) + int(l.replicas)))
	for _, of := range l.kinds {
		for name, uid := range of.there {
			obj := of.fresh(name)
			Expect(kit.Get(ctx, l.tenant.Client, obj)).To(Succeed(), "%T %s was not deleted by the tenant", obj, name)
			Expect(obj.GetUID()).To(Equal(uid), "%T %s was not recreated by the tenant", obj, name)
		}
	}
	for name, uid := range l.pods.there {
		Eventually(copies.Of).WithArguments(l.tenant, uid).Should(HaveLen(1), "the copies that pod %s has had", name)
	}
	for name, uid := range l.steady {
		Expect(copies.Of(l.tenant, l.pods.there[name])).To(ConsistOf(uid), "the copy of pod %s is the one from before", name)
	}
	Expect(copies.Duplicated(l.tenant)).To(BeEmpty())
}
