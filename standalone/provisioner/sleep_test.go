package provisioner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// sleeper is a VirtualCluster with the manager and the syncer that it would
// have.
type sleeper struct {
	*provisioner.Hosted

	vc      *tenancyv1alpha1.VirtualCluster
	metrics *prometheus.Registry
}

// startSleeper creates a provisioner on a host of its own, whose control planes
// sleep after 3 seconds without use.
func startSleeper(t *testing.T, name string) *sleeper {
	t.Helper()
	g := NewWithT(t)
	host, err := hosted.Start(context.Background(), hosted.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	g.Expect(err).NotTo(HaveOccurred())
	registry := prometheus.NewRegistry()
	metrics, err := provisioner.NewMetrics(registry, host.Sleeping)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ways := provisioner.New(ctx, host, provisioner.Options{
		Network: func(string) egress.Network { return egress.Closed{} },
		Sleep:   provisioner.SleepOptions{AfterIdle: 3 * time.Second, Metrics: metrics},
	})
	t.Cleanup(func() {
		cancel()
		ways.Wait()
		metrics.Unregister()
		if left, err := registry.Gather(); err != nil || len(left) > 0 {
			t.Errorf("metrics are left: %v, %v", left, err)
		}
		stopping, cancel := context.WithTimeout(context.Background(), later)
		defer cancel()
		if err := host.Stop(stopping); err != nil {
			t.Error(err)
		}
	})
	return &sleeper{ways, virtualCluster(name), registry}
}

// ensure ensures once, and writes the conditions that the manager and the syncer
// would write.
func (s *sleeper) ensure(t *testing.T) contract.ControlPlane {
	t.Helper()
	state, err := s.Ensure(t.Context(), s.vc)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	awake, syncing := metav1.ConditionTrue, tenancyv1alpha1.ReasonReady
	if state.Sleep.Asleep {
		awake, syncing = metav1.ConditionFalse, tenancyv1alpha1.ReasonAsleep
	}
	meta.SetStatusCondition(&s.vc.Status.Conditions, metav1.Condition{
		Type: tenancyv1alpha1.ConditionAwake, Status: awake, Reason: state.Sleep.Reason,
	})
	s.setSyncing(syncing)
	return state
}

func (s *sleeper) setSyncing(reason string) {
	meta.SetStatusCondition(&s.vc.Status.Conditions, metav1.Condition{
		Type: tenancyv1alpha1.ConditionSyncing, Status: metav1.ConditionTrue, Reason: reason,
	})
}

// until ensures at each event, and at the time that was returned, until a state
// matches.
func (s *sleeper) until(t *testing.T, what string, matches func(contract.ControlPlane) bool) contract.ControlPlane {
	t.Helper()
	limit := time.After(later)
	for {
		before := slices.Clone(s.vc.Status.Conditions)
		state := s.ensure(t)
		if matches(state) {
			return state
		}
		if !slices.Equal(before, s.vc.Status.Conditions) { // the manager gets an event of its own change
			continue
		}
		again := time.After(max(state.RecheckAfter, 10*time.Millisecond))
		if state.RecheckAfter == 0 {
			again = nil
		}
		select {
		case <-s.Events():
		case <-again:
		case <-limit:
			t.Fatalf("%s does not come; last %+v", what, state.Sleep)
		}
	}
}

func (s *sleeper) untilAwake(t *testing.T, reason string) contract.ControlPlane {
	t.Helper()
	return s.until(t, "awake by "+reason, func(c contract.ControlPlane) bool { return c.Ready && c.Sleep.Reason == reason })
}

func (s *sleeper) untilAsleep(t *testing.T, host func() bool) {
	t.Helper()
	s.until(t, "sleep", func(c contract.ControlPlane) bool { return c.IsAsleep() && host() })
}

// sleeping reports whether the host holds connections to the control plane.
func (s *sleeper) sleeping() bool { return s.gauge() > 0 }

func (s *sleeper) gauge() float64 {
	families, _ := s.metrics.Gather() // the error would show as no metric
	for _, family := range families {
		if family.GetName() == "vc_hosted_sleeping_control_planes" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// client returns a client of the admin, or of the platform.
func client(t *testing.T, kubeconfig []byte) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c, err := kubernetes.NewForConfig(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// TestSleep takes a control plane through its reasons to sleep and to wake.
func TestSleep(t *testing.T) { //nolint:tparallel // its steps follow each other
	s := startSleeper(t, "red")
	t.Parallel()
	state := s.untilAwake(t, tenancyv1alpha1.ReasonAwake)
	admin, platform := client(t, state.Kubeconfig), client(t, state.PlatformKubeconfig)
	pods := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err
	}

	t.Run("a pending pod keeps it awake, and requests of the platform do not", func(t *testing.T) {
		g := NewWithT(t)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example/app:1"}},
		}}
		created, err := platform.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		s.until(t, "a reason to stay awake", func(c contract.ControlPlane) bool {
			return c.Ready && strings.HasSuffix(c.Sleep.Message, "Pod default/web is pending")
		})
		created.Status.Phase = corev1.PodRunning
		_, err = platform.CoreV1().Pods("default").UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		s.untilAsleep(t, s.sleeping)
	})
	t.Run("a request wakes it", func(t *testing.T) {
		g := NewWithT(t)
		answered := make(chan error, 1)
		go func() { answered <- pods(admin) }()
		s.untilAwake(t, tenancyv1alpha1.ReasonConnection)
		g.Eventually(answered, later).Should(Receive(Succeed()))
		g.Expect(s.gauge()).To(BeZero())
	})
	t.Run("the syncer wakes it", func(t *testing.T) {
		s.untilAsleep(t, s.sleeping)
		s.setSyncing(tenancyv1alpha1.ReasonWakeNeeded)
		s.untilAwake(t, tenancyv1alpha1.ReasonWakeNeeded)
	})
	t.Run("an admin pauses it", func(t *testing.T) {
		g := NewWithT(t)
		s.vc.Spec.Paused = true
		s.until(t, "the end", func(c contract.ControlPlane) bool { return c.Sleep.Paused && pods(admin) != nil })
		g.Expect(s.gauge()).To(BeZero(), "it does not wake by a connection")
		s.vc.Spec.Paused = false
		s.untilAwake(t, tenancyv1alpha1.ReasonResumed)
		g.Expect(pods(admin)).To(Succeed())
	})
	t.Run("wakes are counted", func(t *testing.T) {
		g := NewWithT(t)
		number, err := testutil.GatherAndCount(s.metrics, "vc_hosted_wake_duration_seconds")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(number).To(Equal(3), "reasons of wakes")
	})
}

// TestScaleToZero: workloads are scaled to zero before a control plane sleeps,
// and back when it wakes.
func TestScaleToZero(t *testing.T) {
	g := NewWithT(t)
	s := startSleeper(t, "blue")
	t.Parallel()
	s.vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{
		Sleep: &tenancyv1alpha1.SleepSpec{Workloads: tenancyv1alpha1.SleepingWorkloadsScaleToZero},
	}
	platform := client(t, s.untilAwake(t, tenancyv1alpha1.ReasonAwake).PlatformKubeconfig)
	sets := platform.AppsV1().StatefulSets("default")
	app := map[string]string{"app": "db"}
	_, err := sets.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{
				Containers:                    []corev1.Container{{Name: "main", Image: "example/app:1"}},
				TerminationGracePeriodSeconds: new(int64(0)),
			}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	run := func() {
		pod, err := platform.CoreV1().Pods("default").Get(t.Context(), "db-0", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			pod.Status.Phase = corev1.PodRunning
			_, err = platform.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		}
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(func() error {
		_, err := platform.CoreV1().Pods("default").Get(t.Context(), "db-0", metav1.GetOptions{})
		return err
	}, later).Should(Succeed())
	run()
	s.untilAsleep(t, s.sleeping)

	s.vc.Annotations = map[string]string{names.WokenAt: time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}
	s.untilAwake(t, tenancyv1alpha1.ReasonRequested)
	s.until(t, "the workload as it was", func(contract.ControlPlane) bool {
		set, err := sets.Get(t.Context(), "db", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return *set.Spec.Replicas == 1 && set.Annotations[names.ReplicasAwake] == ""
	})
}

// TestASleeperAfterARestart: a control plane that slept when its host stopped
// sleeps on, without a start, and wakes when its work is due.
func TestASleeperAfterARestart(t *testing.T) {
	g := NewWithT(t)
	s := startSleeper(t, "green")
	t.Parallel()
	meta.SetStatusCondition(&s.vc.Status.Conditions, metav1.Condition{
		Type: tenancyv1alpha1.ConditionAwake, Status: metav1.ConditionFalse, Reason: tenancyv1alpha1.ReasonIdle,
	})
	s.vc.Status.WakeTime = new(metav1.NewTime(time.Now().Add(time.Hour)))
	state := s.ensure(t)
	g.Expect(state.IsAsleep()).To(BeTrue())
	g.Expect(state.RecheckAfter).To(BeNumerically("~", time.Hour, time.Minute))
	g.Expect(state.Sleep.WakeTime).To(BeTemporally("==", s.vc.Status.WakeTime.Time))
	g.Expect(s.gauge()).To(BeEquivalentTo(1))
	g.Consistently(s.Events(), "200ms").ShouldNot(Receive(), "it is not started")

	s.vc.Status.WakeTime = new(metav1.NewTime(time.Now()))
	state = s.ensure(t)
	g.Expect(state.IsAsleep()).To(BeTrue(), "while it wakes")
	g.Expect(state.Sleep.Message).To(ContainSubstring("wakes"))
	s.untilAwake(t, tenancyv1alpha1.ReasonWorkDue)
	g.Expect(s.gauge()).To(BeZero())
}
