package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/hosted"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// hosting is a super cluster of its own with a vc-manager that offers Hosted.
// The specs have the part of vc-host, by the permissions of its service account.
type hosting struct {
	*local.SuperCluster

	host client.Client
}

func startHosting(ctx context.Context) *hosting {
	GinkgoHelper()
	super, err := local.Start(ctx, kit.TempDir(), "--manager=false", "--syncer=false", "--agent=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	of, err := super.HostConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	host, err := local.NewClient(of)
	Expect(err).NotTo(HaveOccurred())
	h := &hosting{SuperCluster: super, host: host}
	h.startManager(ctx)
	return h
}

// startManager starts vc-manager until the end of the container of specs, by the
// permissions of its service account.
func (h *hosting) startManager(ctx context.Context) {
	GinkgoHelper()
	account, err := h.ManagerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	ours := provisioner.Registration{
		Name: tenancyv1alpha1.ProvisionerHosted,
		New: func(mgr manager.Manager) (provisioner.Provisioner, error) {
			return hosted.New(mgr, types.NamespacedName{Namespace: rbac.Namespace, Name: rbac.Host}), nil
		},
	}
	options := app.Options{
		DefaultProvisioner: tenancyv1alpha1.ProvisionerHosted, Options: component.Options{Logger: logger},
	}
	working, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(working, account, options, ours) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
}

// create creates a VirtualCluster. At the end, it is deleted, and vc-host lets
// its control plane go.
func (h *hosting) create(ctx context.Context) *tenancyv1alpha1.VirtualCluster {
	GinkgoHelper()
	vc := kit.VirtualCluster()
	kit.Create(ctx, h.Client, vc)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(h.Client.Delete(ctx, vc))).To(Succeed())
		Eventually(func(g Gomega) {
			plane := planeOf(vc)
			if kit.Get(ctx, h.Client, plane) == nil {
				g.Expect(h.release(ctx, plane)).To(Succeed())
			}
			g.Expect(kit.Get(ctx, h.Client, vc)).To(MatchError(apierrors.IsNotFound, "not found"))
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	})
	return vc
}

// store creates a ControlPlaneStore until the end of the spec.
func (h *hosting) store(ctx context.Context, name string, change ...func(*tenancyv1alpha1.ControlPlaneStore)) *tenancyv1alpha1.ControlPlaneStore {
	GinkgoHelper()
	s := &tenancyv1alpha1.ControlPlaneStore{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: tenancyv1alpha1.ControlPlaneStoreSpec{
			Endpoints: []string{"https://" + name + ".vc-system.svc:2379"}, CredentialsSecret: name,
		},
	}
	for _, f := range change {
		f(s)
	}
	kit.Create(ctx, h.Client, s)
	DeferCleanup(func(ctx SpecContext) { Expect(h.Client.Delete(ctx, s)).To(Succeed()) })
	return s
}

// check reports on a store, as vc-host.
func (h *hosting) check(ctx context.Context, s *tenancyv1alpha1.ControlPlaneStore, healthy metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Expect(kit.Get(ctx, h.host, s)).To(Succeed())
	before := s.DeepCopy()
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: tenancyv1alpha1.ConditionStoreHealthy, Status: healthy, Reason: reason,
	})
	Expect(h.host.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
}

// healthyStore creates a store that takes control planes.
func (h *hosting) healthyStore(ctx context.Context, name string, change ...func(*tenancyv1alpha1.ControlPlaneStore)) {
	GinkgoHelper()
	h.check(ctx, h.store(ctx, name, change...), metav1.ConditionTrue, tenancyv1alpha1.ReasonHealthy)
}

// placed waits for the HostedControlPlane of a VirtualCluster.
func (h *hosting) placed(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) *tenancyv1alpha1.HostedControlPlane {
	GinkgoHelper()
	plane := planeOf(vc)
	kit.ShouldExist(ctx, h.host, plane)
	return plane
}

// report writes conditions of a control plane, as vc-host.
func (h *hosting) report(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, conditions ...metav1.Condition) {
	GinkgoHelper()
	Expect(kit.Get(ctx, h.host, plane)).To(Succeed())
	before := plane.DeepCopy()
	for _, condition := range conditions {
		condition.ObservedGeneration = 1
		meta.SetStatusCondition(&plane.Status.Conditions, condition)
	}
	plane.Status.Host, plane.Status.Version = "vc-host-0", "v1.36.3"
	plane.Status.Endpoint, plane.Status.PodEndpoint = "https://"+plane.Namespace+".example:6443", "https://10.0.0.10:443"
	Expect(h.host.Status().Patch(ctx, plane, client.MergeFrom(before))).To(Succeed())
}

// publish creates the Secret by which clients reach a control plane, as vc-host.
func (h *hosting) publish(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, of types.UID) *corev1.Secret {
	GinkgoHelper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneSecret,
			Annotations: map[string]string{names.VCUID: string(of)},
		},
		StringData: map[string]string{
			tenancyv1alpha1.AdminKubeconfigKey:    "of the admin",
			tenancyv1alpha1.PlatformKubeconfigKey: "of the platform",
			tenancyv1alpha1.KubeletClientCAKey:    "an authority",
		},
	}
	// vc-host may do that when the apiserver knows the RoleBinding of vc-manager.
	Eventually(h.host.Create).WithContext(ctx).WithArguments(s).Should(Succeed())
	return s
}

// release deletes the data of a control plane that is being deleted, as vc-host.
func (h *hosting) release(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) error {
	if plane.DeletionTimestamp.IsZero() {
		return nil
	}
	before := plane.DeepCopy()
	plane.Finalizers = nil
	return client.IgnoreNotFound(h.host.Patch(ctx, plane, client.MergeFrom(before)))
}

// planeOf returns the HostedControlPlane of a VirtualCluster, unread.
func planeOf(vc *tenancyv1alpha1.VirtualCluster) *tenancyv1alpha1.HostedControlPlane {
	return &tenancyv1alpha1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ClusterKey(vc.Namespace, vc.Name, vc.UID), Name: tenancyv1alpha1.HostedControlPlaneName,
	}}
}

func readyCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: tenancyv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
}

var _ = Describe("vc-manager with vc-host", Ordered, func() {
	const (
		yes = metav1.ConditionTrue
		no  = metav1.ConditionFalse
	)
	var h *hosting
	BeforeAll(func(ctx SpecContext) { h = startHosting(ctx) })

	// shows waits for a condition of a VirtualCluster, and returns its message.
	shows := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, kind string, status metav1.ConditionStatus, reason string) string {
		GinkgoHelper()
		Eventually(kit.Read(ctx, h.Client, vc)).Should(kit.HaveCondition(kind, status, reason))
		return meta.FindStatusCondition(must(kit.Read(ctx, h.Client, vc)()).Status.Conditions, kind).Message
	}
	// touch has a VirtualCluster reconciled.
	touch := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
		GinkgoHelper()
		kit.Edit(ctx, h.Client, vc, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{"example.com/touched": time.Now().String()}
		})
	}

	It("says that there is no store, waits for its check, and makes the control plane at once", func(ctx SpecContext) {
		vc := h.create(ctx)
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonNoStore)).
			To(ContainSubstring("there is no ControlPlaneStore"))
		s := h.store(ctx, "first")
		touch(ctx, vc)
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonStarting)).
			To(ContainSubstring("first, which was not checked"))
		h.check(ctx, s, no, tenancyv1alpha1.ReasonStoreUnreachable)
		touch(ctx, vc)
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonNoStore)).
			To(ContainSubstring("first is not healthy: Unreachable"))

		h.check(ctx, s, yes, tenancyv1alpha1.ReasonHealthy)
		// Not with the next retry, which is 15 seconds later.
		Eventually(kit.Get).WithContext(ctx).WithArguments(h.host, planeOf(vc)).WithTimeout(14 * time.Second).Should(Succeed())
		plane := h.placed(ctx, vc)
		Expect(plane.Spec).To(Equal(tenancyv1alpha1.HostedControlPlaneSpec{
			VirtualCluster: tenancyv1alpha1.VirtualClusterReference{Namespace: vc.Namespace, Name: vc.Name, UID: vc.UID},
			Store:          "first",
		}))
		Expect(plane.Finalizers).To(ConsistOf(tenancyv1alpha1.HostedControlPlaneFinalizer))
		Expect(plane.Labels).To(Equal(map[string]string{names.VCName: vc.Name, names.VCNamespace: vc.Namespace}))
		Expect(plane.Annotations).To(HaveKeyWithValue(names.VCUID, string(vc.UID)))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonStarting)).
			To(ContainSubstring("Waiting for a replica of vc-host"))
		Expect(kit.Read(ctx, h.Client, vc)()).To(HaveField("Status.ClusterNamespace", plane.Namespace))
	})

	It("fills stores evenly and no further than their capacity", func(ctx SpecContext) {
		small := func(s *tenancyv1alpha1.ControlPlaneStore) {
			s.Spec.Capacity = tenancyv1alpha1.StoreCapacity{ControlPlanes: new(int32(2)), Storage: new(resource.MustParse("1Gi"))}
		}
		h.healthyStore(ctx, "a", small)
		h.healthyStore(ctx, "b", small)
		h.healthyStore(ctx, "c", func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = true })
		var all []*tenancyv1alpha1.VirtualCluster
		for range 5 {
			all = append(all, h.create(ctx))
		}
		stores := func() (found map[string]int, err error) {
			planes := &tenancyv1alpha1.HostedControlPlaneList{}
			err, found = h.host.List(ctx, planes), map[string]int{}
			for i := range planes.Items {
				found[planes.Items[i].Spec.Store]++
			}
			return found, err
		}
		Eventually(stores).Should(Equal(map[string]int{"a": 2, "b": 2}))
		var late *tenancyv1alpha1.VirtualCluster
		Eventually(func(g Gomega) {
			late = nil
			message := ""
			for _, vc := range all {
				if now, err := kit.Read(ctx, h.Client, vc)(); err == nil && now.Status.Reason == tenancyv1alpha1.ReasonNoStore {
					late, message = vc, now.Status.Message
				}
			}
			g.Expect(late).NotTo(BeNil())
			g.Expect(message).To(ContainSubstring("(a has 2 control planes, and takes 2; b has 2 control planes, and takes 2; c is unschedulable)"))
		}).WithContext(ctx).Should(Succeed())
		Consistently(stores).Should(Equal(map[string]int{"a": 2, "b": 2}))

		edit := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		kit.Edit(ctx, h.Client, edit, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = false })
		Expect(h.placed(ctx, late).Spec.Store).To(Equal("c"))
	})

	It("shows in the VirtualCluster what vc-host reports", func(ctx SpecContext) {
		h.healthyStore(ctx, "shown")
		vc := h.create(ctx)
		plane := h.placed(ctx, vc)
		h.report(ctx, plane, readyCondition(no, tenancyv1alpha1.ReasonStarting, "The controllers are starting"))
		Eventually(kit.Read(ctx, h.Client, vc)).Should(HaveField("Status.Message", "The controllers are starting"))
		h.report(ctx, plane, readyCondition(no, tenancyv1alpha1.ReasonUnsupportedVersion, "Only v1.36.3"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonUnsupportedVersion)).To(Equal("Only v1.36.3"))
		Expect(kit.Read(ctx, h.Client, vc)()).To(HaveField("Status.Phase", tenancyv1alpha1.PhaseError))

		h.report(ctx, plane, readyCondition(yes, tenancyv1alpha1.ReasonReady, "The control plane serves"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonStarting)).
			To(ContainSubstring("Waiting for vc-host to write the kubeconfigs"))
		h.publish(ctx, plane, vc.UID)
		touch(ctx, vc)
		shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, yes, tenancyv1alpha1.ReasonReady)
		shows(ctx, vc, tenancyv1alpha1.ConditionReady, no, tenancyv1alpha1.ReasonNotSyncing)
		now := must(kit.Read(ctx, h.Client, vc)())
		Expect(now.Status.Endpoint).To(Equal("https://" + plane.Namespace + ".example:6443"))
		Expect(now.Status.PodEndpoint).To(Equal("https://10.0.0.10:443"))
		Expect(now.Status.Version).To(Equal("v1.36.3"))
		kubeconfigs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, h.Client, kubeconfigs)).To(Succeed())
		Expect(kubeconfigs.Data).To(Equal(map[string][]byte{
			names.AdminKubeconfigKey: []byte("of the admin"), names.PlatformKubeconfigKey: []byte("of the platform"),
		}))
		authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: names.KubeletClientCAConfigMap}}
		Expect(kit.Get(ctx, h.Client, authority)).To(Succeed())
		Expect(authority.Data).To(Equal(map[string]string{names.KubeletClientCAKey: "an authority"}))

		h.report(ctx, plane,
			metav1.Condition{Type: tenancyv1alpha1.ConditionWithinLimits, Status: no, Reason: tenancyv1alpha1.ReasonStorageLimitReached, Message: "Full"},
			metav1.Condition{Type: tenancyv1alpha1.ConditionControllersWorking, Status: no, Reason: tenancyv1alpha1.ReasonControllersFailing, Message: "job"},
			metav1.Condition{Type: tenancyv1alpha1.ConditionAwake, Status: yes, Reason: tenancyv1alpha1.ReasonAwake, Message: "Started"},
		)
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionWithinLimits, no, tenancyv1alpha1.ReasonStorageLimitReached)).To(Equal("Full"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControllersWorking, no, tenancyv1alpha1.ReasonControllersFailing)).To(Equal("job"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionAwake, yes, tenancyv1alpha1.ReasonAwake)).To(Equal("Started"))

		h.report(ctx, plane,
			readyCondition(no, tenancyv1alpha1.ReasonAsleep, "Not used"),
			metav1.Condition{Type: tenancyv1alpha1.ConditionAwake, Status: no, Reason: tenancyv1alpha1.ReasonIdle, Message: "Not used"},
		)
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionAwake, no, tenancyv1alpha1.ReasonIdle)).To(Equal("Not used"))
		asleep := must(kit.Read(ctx, h.Client, vc)())
		Expect(asleep.Status.Phase).To(Equal(tenancyv1alpha1.PhaseAsleep))
		Expect(asleep.Status.Endpoint).To(Equal(now.Status.Endpoint), "of when it was awake")
	})

	It("deletes the control plane before the root namespace, and waits for vc-host", func(ctx SpecContext) {
		h.healthyStore(ctx, "emptied")
		vc := h.create(ctx)
		plane := h.placed(ctx, vc)
		clients := h.publish(ctx, plane, vc.UID)
		Expect(h.Client.Delete(ctx, vc)).To(Succeed())
		Eventually(kit.Read(ctx, h.host, plane)).ShouldNot(HaveField("DeletionTimestamp", BeNil()))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonTerminating)).
			To(ContainSubstring("the control plane"))
		Consistently(kit.Read(ctx, h.Client, kit.Namespace(plane.Namespace))).Should(HaveField("DeletionTimestamp", BeNil()))
		Expect(kit.Get(ctx, h.host, clients)).To(Succeed(), "vc-host has the keys until the end")

		h.report(ctx, plane, readyCondition(no, tenancyv1alpha1.ReasonStoreUnreachable, "The store is not reached"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonStoreUnreachable)).
			To(Equal("The store is not reached"))
		Expect(kit.Get(ctx, h.host, plane)).To(Succeed())
		Expect(h.release(ctx, plane)).To(Succeed())
		kit.ShouldVanish(ctx, h.Client, vc)
		kit.ShouldVanish(ctx, h.Client, kit.Namespace(plane.Namespace))
	})

	It("uses no HostedControlPlane and no Secret of another VirtualCluster", func(ctx SpecContext) {
		vc := h.create(ctx)
		shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonNoStore)
		foreign := planeOf(vc)
		foreign.Spec = tenancyv1alpha1.HostedControlPlaneSpec{
			VirtualCluster: tenancyv1alpha1.VirtualClusterReference{Namespace: vc.Namespace, Name: vc.Name, UID: "another"}, Store: "elsewhere",
		}
		kit.Create(ctx, h.Client, foreign)
		h.report(ctx, foreign, readyCondition(yes, tenancyv1alpha1.ReasonReady, "Serves"))
		message := shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonNamespaceConflict)
		Expect(message).To(And(ContainSubstring("HostedControlPlane"), ContainSubstring(`"another"`)))
		Expect(h.Client.Delete(ctx, foreign)).To(Succeed())

		h.healthyStore(ctx, "own")
		touch(ctx, vc)
		plane := h.placed(ctx, vc)
		shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonStarting) // and not the conflict above any more
		h.publish(ctx, plane, "another")
		h.report(ctx, plane, readyCondition(yes, tenancyv1alpha1.ReasonReady, "Serves"))
		Expect(shows(ctx, vc, tenancyv1alpha1.ConditionControlPlaneReady, no, tenancyv1alpha1.ReasonNamespaceConflict)).
			To(ContainSubstring("Secret"))
		Expect(kit.Get(ctx, h.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}})).
			To(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("lets vc-host use the two Secrets in a root namespace, and no other", func(ctx SpecContext) {
		h.healthyStore(ctx, "granted")
		vc := h.create(ctx)
		root := h.placed(ctx, vc).Namespace
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: root, Name: rbac.HostKeys}}
		Expect(kit.Get(ctx, h.Client, binding)).To(Succeed())
		Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: rbac.Host}))

		// allowed reports whether vc-host may use a Secret.
		allowed := func(verb, namespace, name string) func() (bool, error) {
			return func() (bool, error) {
				return local.Allowed(ctx, h.host, authorizationv1.ResourceAttributes{
					Verb: verb, Namespace: namespace, Resource: "secrets", Name: name,
				})
			}
		}
		for _, name := range []string{tenancyv1alpha1.HostedControlPlaneKeys, tenancyv1alpha1.HostedControlPlaneSecret} {
			for _, verb := range []string{"get", "create", "update", "delete"} {
				Eventually(allowed(verb, root, name)).Should(BeTrue(), "%s %s", verb, name)
				Expect(allowed(verb, vc.Namespace, name)()).To(BeFalse(), "%s %s elsewhere", verb, name)
			}
		}
		Expect(allowed("get", root, names.AdminKubeconfigSecret)()).To(BeFalse())
		Expect(allowed("list", root, "")()).To(BeFalse())
		Expect(allowed("get", rbac.Namespace, "vc-store-client")()).To(BeTrue())
		for _, name := range []string{"vc-manager-webhook", "vc-store-authority", "vc-store-members"} {
			Expect(allowed("get", rbac.Namespace, name)()).To(BeFalse(), name)
		}

		By("restoring the binding")
		Eventually(func() (bool, error) { // it may be back before the apiserver notices that it is gone
			if err := client.IgnoreNotFound(h.Client.Delete(ctx, binding)); err != nil {
				return true, err
			}
			return allowed("get", root, tenancyv1alpha1.HostedControlPlaneKeys)()
		}).Should(BeFalse())
		touch(ctx, vc)
		Eventually(allowed("get", root, tenancyv1alpha1.HostedControlPlaneKeys)).Should(BeTrue())
	})
})
