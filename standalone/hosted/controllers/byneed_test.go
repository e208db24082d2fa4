package controllers_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	later  = time.Minute
	linger = 300 * time.Millisecond
)

func TestMain(m *testing.M) {
	utilruntime.ReallyCrash = false
	m.Run()
}

// host has the chain of the tenants of a test.
type host struct {
	chain   *chain.Chain
	changes *controllers.Changes
	ca      pki.Authority
	key     []byte
}

func newHost(t *testing.T) *host {
	t.Helper()
	g := NewWithT(t)
	kv, client := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	confined, err := clientv3.New(clientv3.Config{Endpoints: client.Endpoints(), DialTimeout: later, Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = confined.Close() })
	h := &host{changes: controllers.NewChanges(source)}
	t.Cleanup(h.changes.Close)
	h.chain, err = chain.New(ctx, chain.Options{Store: keyspace.Confine(confined), Feed: source})
	g.Expect(err).NotTo(HaveOccurred())
	h.ca, err = pki.NewAuthority("ca", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	h.key, _, err = pki.NewSigningKey()
	g.Expect(err).NotTo(HaveOccurred())
	return h
}

// tenant has the controllers of a tenant.
type tenant struct {
	*controllers.ByNeed

	config   *rest.Config
	client   kubernetes.Interface
	mu       sync.Mutex
	failures []error
}

func (n *tenant) fail(_ string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures = append(n.failures, err)
}

func (n *tenant) failed() []error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.failures)
}

// add adds a tenant with controllers.
func (h *host) add(t *testing.T, name string, with ...controllers.Controller) *tenant {
	t.Helper()
	g := NewWithT(t)
	_, services, err := net.ParseCIDR("10.96.0.0/16")
	g.Expect(err).NotTo(HaveOccurred())
	of, err := h.chain.Add(chain.Spec{
		Name: name, ClusterDomain: "cluster.local", ServiceCIDRs: []net.IPNet{*services}, ClientCA: h.ca.CertPEM, SigningKey: h.key, FrontProxyCA: h.ca.CertPEM,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.chain.Bootstrap(t.Context(), of)).To(Succeed())
	added := &tenant{config: of.Config(), client: of.Client()}
	added.ByNeed = controllers.StartByNeed(context.Background(), append(controllers.Tenant(), with...), controllers.Options{
		Tenant: name, Views: of.Views(), Changes: h.changes, OnFailure: added.fail, Linger: linger,
		Cluster: controllers.Cluster{Config: of.Config(), Client: of.Client(), Authority: h.ca, Validity: time.Hour, SigningKey: h.key},
	})
	t.Cleanup(added.Stop)
	return added
}

// idle means that a tenant has its objects, and no controller runs any more.
func (n *tenant) idle(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		_, err := n.client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = n.client.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.Running()).To(BeEmpty())
	}, later).Should(Succeed())
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}, RestartPolicy: corev1.RestartPolicyAlways},
	}
}

// createDeployment creates a Deployment and waits for its pods.
func (n *tenant) createDeployment(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	_, err := n.client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template("web")},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	n.hasPods(t, HaveLen(2))
}

func (n *tenant) hasPods(t *testing.T, matcher gomegatypes.GomegaMatcher) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		pods, err := n.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(matcher)
	}, later).Should(Succeed())
}

// TestControllersRunByNeed follows a workload of one tenant from its creation to
// the end of its controllers. The other tenant stays without any.
func TestControllersRunByNeed(t *testing.T) {
	g := NewWithT(t)
	h := newHost(t)
	red, blue := h.add(t, "red"), h.add(t, "blue")
	red.idle(t)
	blue.idle(t)
	red.createDeployment(t)
	g.Eventually(red.Running, later).Should(ContainElements("deployment-controller", "replicaset-controller", "garbage-collector-controller"))
	g.Expect(red.Running()).NotTo(ContainElements("job-controller", "statefulset-controller", "cronjob-controller"))
	g.Expect(blue.Running()).To(BeEmpty())
	g.Consistently(red.Running, 3*linger).Should(ContainElements("deployment-controller", "garbage-collector-controller"), "they are still needed")

	g.Expect(red.client.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	red.hasPods(t, BeEmpty())
	red.idle(t)
	g.Expect(slices.Concat(red.failed(), blue.failed())).To(BeEmpty())
}

// TestJobsByNeed: the Job controller begins with the first Job, and removes its
// finalizers from the pods of the last one.
func TestJobsByNeed(t *testing.T) {
	g := NewWithT(t)
	red := newHost(t).add(t, "red")
	red.idle(t)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batchv1.JobSpec{Template: template("once")}}
	job.Spec.Template.Spec.RestartPolicy, job.Spec.Template.Labels = corev1.RestartPolicyNever, nil
	_, err := red.client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	red.hasPods(t, HaveLen(1))
	g.Expect(red.Running()).To(ContainElement("job-controller"))
	g.Expect(red.client.BatchV1().Jobs("default").Delete(t.Context(), "once", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})).To(Succeed())
	red.hasPods(t, BeEmpty())
	red.idle(t)
}

// TestTrackedPodsByNeed: the finalizer of a pod whose Job is gone is removed, and the
// controller that does it ends.
func TestTrackedPodsByNeed(t *testing.T) {
	g := NewWithT(t)
	red := newHost(t).add(t, "red")
	red.idle(t)
	left := template("left")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "left", Finalizers: []string{batchv1.JobTrackingFinalizer}}, Spec: left.Spec}
	_, err := red.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() ([]string, error) {
		found, err := red.client.CoreV1().Pods("default").Get(t.Context(), "left", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return found.Finalizers, nil
	}, later).Should(BeEmpty())
	g.Expect(red.client.CoreV1().Pods("default").Delete(t.Context(), "left", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
	red.idle(t)
}

// TestNamespacesByNeed: a namespace has its objects when it is created, and is
// emptied when it is deleted.
func TestNamespacesByNeed(t *testing.T) {
	g := NewWithT(t)
	red := newHost(t).add(t, "red")
	red.idle(t)
	core := red.client.CoreV1()
	_, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	present := func(g Gomega) {
		_, err := core.ServiceAccounts("team").Get(t.Context(), "default", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = core.ConfigMaps("team").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(present, later).Should(Succeed())
	red.idle(t)
	g.Expect(core.ServiceAccounts("team").Delete(t.Context(), "default", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(core.ConfigMaps("team").Delete(t.Context(), "kube-root-ca.crt", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(present, later).Should(Succeed())
	g.Expect(core.Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() bool {
		_, err := core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, later).Should(BeTrue())
	red.idle(t)
}

// TestCascadesByNeed: dependents of any kind go away with their owner, though
// the collector did not run when they were created.
func TestCascadesByNeed(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			g := NewWithT(t)
			red := newHost(t).add(t, "red")
			red.idle(t)
			configMaps := red.client.CoreV1().ConfigMaps("default")
			owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dependent", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: new(true)},
			}}}
			_, err = configMaps.Create(t.Context(), dependent, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy})).To(Succeed())
			g.Eventually(func(g Gomega) {
				for _, name := range []string{"owner", "dependent"} {
					_, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
					g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), name)
				}
			}, later).Should(Succeed())
			red.idle(t)
		})
	}
}

// TestAControllerThatPanics starts again, and stops no other.
func TestAControllerThatPanics(t *testing.T) {
	g := NewWithT(t)
	var starts atomic.Int32
	var works atomic.Bool
	faulty := controllers.Controller{Name: "faulty", Build: func(context.Context, *controllers.Environment) (func(context.Context), error) {
		switch {
		case starts.Add(1) == 1:
			panic("a nil map")
		case !works.Load():
			return func(context.Context) {}, nil // ends by itself
		}
		return func(ctx context.Context) { <-ctx.Done() }, nil
	}}
	h := newHost(t)
	red, blue := h.add(t, "red", faulty), h.add(t, "blue")
	red.createDeployment(t)
	blue.createDeployment(t)
	g.Eventually(red.Failing, later).Should(HaveKeyWithValue("faulty", MatchError("it exited by itself")))
	g.Expect(red.failed()[0]).To(MatchError("run the controller faulty: panic: a nil map"))
	g.Expect(red.failed()[1:]).To(HaveEach(MatchError("run the controller faulty: it exited by itself")))
	g.Expect(blue.failed()).To(BeEmpty())
	g.Expect(blue.Failing()).To(BeEmpty())
	works.Store(true)
	g.Eventually(red.Failing, later).Should(BeEmpty(), "it works again")
	g.Eventually(red.Running, later).Should(ContainElement("faulty"))
	red.Stop()
	g.Expect(red.Running()).To(BeEmpty())
}

// TestIdleTenantsAreCheap: an idle tenant has one goroutine, which waits.
func TestIdleTenantsAreCheap(t *testing.T) {
	const tenants = 10
	g := NewWithT(t)
	h := newHost(t)
	h.add(t, "first").idle(t)
	before := runtime.NumGoroutine()
	for i := range tenants {
		h.add(t, fmt.Sprint("tenant-", i)).idle(t)
	}
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<=", before+tenants+tenants/2))
}

// TestPolicyStatusByNeed: a policy gets its warnings, and the controller ends
// although the policy remains.
func TestPolicyStatusByNeed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	red := newHost(t).add(t, "red")
	red.idle(t)
	everything := admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		},
	}}}
	policies := red.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	_, err := policies.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "replicas"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &everything,
			Validations:      []admissionregistrationv1.Validation{{Expression: "object.spec.replicas > 'one'"}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (*admissionregistrationv1.TypeChecking, error) {
		found, err := policies.Get(t.Context(), "replicas", metav1.GetOptions{})
		return found.Status.TypeChecking, err
	}, later).Should(HaveField("ExpressionWarnings", ConsistOf(HaveField("FieldRef", "spec.validations[0].expression"))))
	g.Eventually(red.Running, later).Should(BeEmpty())
	g.Expect(red.failed()).To(BeEmpty())
}
