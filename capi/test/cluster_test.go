package test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

const (
	version = "v1.36.3"
	// tenantTimeout bounds how long a Cluster takes to become available or to
	// vanish: Cluster API's controllers probe and retry at intervals of seconds.
	tenantTimeout = 3 * time.Minute
	specTimeout   = 6 * time.Minute
)

// longer is the environment variable for specs that take minutes.
const longer = "AT_LENGTH"

var serial int

// meta returns the metadata of an object with a unique name.
func meta() metav1.ObjectMeta {
	serial++
	return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("c%d", serial)}
}

// classy returns a Cluster of the class in the samples.
func classy(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: meta()}
	cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "nested"}, Version: version}
	for _, f := range change {
		f(cluster)
	}
	return cluster
}

// plain creates a Cluster without a class, its NestedCluster and its
// NestedControlPlane, all of one name.
func plain(ctx context.Context, change func(*clusterv1.Cluster, *infrav1.NestedCluster, *controlplanev1.NestedControlPlane)) *clusterv1.Cluster {
	GinkgoHelper()
	cluster := &clusterv1.Cluster{ObjectMeta: meta()}
	infrastructure := &infrav1.NestedCluster{ObjectMeta: cluster.ObjectMeta}
	controlPlane := &controlplanev1.NestedControlPlane{ObjectMeta: cluster.ObjectMeta}
	controlPlane.Spec.Version = version
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.NestedClusterKind, Name: cluster.Name,
	}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: controlplanev1.NestedControlPlaneKind, Name: cluster.Name,
	}
	if change != nil {
		change(cluster, infrastructure, controlPlane)
	}
	kit.Create(ctx, admin, infrastructure, controlPlane, cluster)
	deleteAtEnd(cluster)
	return cluster
}

func deleteAtEnd(cluster *clusterv1.Cluster) {
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, cluster))).To(Succeed()) })
}

func condition(kind string, status metav1.ConditionStatus, message string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", kind), HaveField("Status", status), HaveField("Message", ContainSubstring(message)))))
}

// shouldBeAvailable waits for what Cluster API itself says.
func shouldBeAvailable(ctx context.Context, cluster *clusterv1.Cluster) {
	GinkgoHelper()
	Eventually(kit.Read(ctx, admin, cluster)).WithTimeout(tenantTimeout).Should(And(
		condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, ""),
		condition(clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionTrue, ""),
		condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionTrue, ""),
		condition(clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionTrue, ""),
		condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, ""),
	))
	Expect(kit.Get(ctx, admin, cluster)).To(Succeed())
}

func virtualCluster(cluster *clusterv1.Cluster) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
}

func controlPlane(cluster *clusterv1.Cluster) *controlplanev1.NestedControlPlane {
	return &controlplanev1.NestedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name,
	}}
}

func infrastructure(cluster *clusterv1.Cluster) *infrav1.NestedCluster {
	return &infrav1.NestedCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name,
	}}
}

func kubeconfig(cluster *clusterv1.Cluster) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}}
}

// tenantOf returns a client with the credentials that Cluster API has.
func tenantOf(ctx context.Context, cluster *clusterv1.Cluster) client.Client {
	GinkgoHelper()
	secret := kubeconfig(cluster)
	Expect(kit.Get(ctx, admin, secret)).To(Succeed())
	Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
	Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, cluster.Name))
	restConfig, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	Expect(err).NotTo(HaveOccurred())
	Expect(restConfig.ServerName).To(BeEmpty(), "clients that ignore it could not use the kubeconfig")
	c, err := client.New(restConfig, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func shouldLeaveNothing(ctx context.Context, cluster *clusterv1.Cluster) {
	GinkgoHelper()
	vc := virtualCluster(cluster)
	Expect(kit.Get(ctx, admin, vc)).To(Succeed())
	Expect(admin.Delete(ctx, cluster)).To(Succeed())
	for _, obj := range []client.Object{
		cluster, controlPlane(cluster), infrastructure(cluster), vc, kubeconfig(cluster),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vc.Status.ClusterNamespace}},
	} {
		Eventually(func() error { return kit.Get(ctx, admin, obj) }).WithTimeout(tenantTimeout).
			Should(MatchError(apierrors.IsNotFound, "not found"), "%T %s", obj, obj.GetName())
	}
}

var _ = Describe("A Cluster of a class", func() {
	It("becomes a tenant, is described by clusterctl, and leaves nothing", func(ctx SpecContext) {
		cluster := classy()
		kit.Create(ctx, admin, cluster)
		deleteAtEnd(cluster)
		shouldBeAvailable(ctx, cluster)

		By("following its VirtualCluster")
		vc := virtualCluster(cluster)
		Expect(kit.Get(ctx, admin, vc)).To(Succeed())
		Expect(vc.Spec.KubernetesVersion).To(Equal(version))
		Expect(vc.Spec.Provisioner).To(Equal(tenancyv1alpha1.ProvisionerHosted))
		Expect(vc.OwnerReferences).To(BeEmpty()) // see docs/decisions/0060
		Expect(cluster.Spec.ControlPlaneEndpoint.Host).NotTo(BeEmpty())
		Expect(vc.Status.Endpoint).To(HaveSuffix(":%d", cluster.Spec.ControlPlaneEndpoint.Port))
		Expect(kit.Read(ctx, admin, controlPlane(cluster))()).To(And(
			HaveField("Status.Versions", ConsistOf(clusterv1.StatusVersion{Version: version})),
			HaveField("OwnerReferences", ContainElement(HaveField("UID", cluster.UID)))))
		Expect(kit.Read(ctx, admin, infrastructure(cluster))()).To(
			HaveField("Status.ClusterNamespace", vc.Status.ClusterNamespace))

		By("serving the tenant")
		Expect(tenantOf(ctx, cluster).Create(ctx, kit.Namespace("shop"))).To(Succeed())

		By("showing its tree and its conditions in clusterctl describe")
		described := here.clusterctl(ctx, "describe", "cluster", cluster.Name, "-n", cluster.Namespace, "--echo", "--show-conditions", "all")
		Expect(described).To(And(
			MatchRegexp(`(?m)^Cluster %s/%s\b`, cluster.Namespace, cluster.Name),
			MatchRegexp(`(?m)^[├└]─NestedCluster %s/%s\b`, cluster.Namespace, cluster.Spec.InfrastructureRef.Name),
			MatchRegexp(`(?m)^[├└]─NestedControlPlane %s/%s\b`, cluster.Namespace, cluster.Spec.ControlPlaneRef.Name),
			MatchRegexp(`─VirtualClusterUpToDate +True +UpToDate `),
			MatchRegexp(`─KubeconfigAvailable +True +Available `)))
		printed := here.clusterctl(ctx, "get", "kubeconfig", cluster.Name, "-n", cluster.Namespace)
		Expect(strings.TrimSpace(printed)).To(Equal(
			strings.TrimSpace(string(must(kit.Read(ctx, admin, kubeconfig(cluster))()).Data["value"]))))

		By("being deleted")
		shouldLeaveNothing(ctx, cluster)
	}, NodeTimeout(specTimeout))

	It("is restored from a directory with its tenant", func(ctx SpecContext) {
		// clusterctl takes all Clusters of a namespace.
		kit.Create(ctx, admin, kit.Namespace("restored"))
		here.installClass(ctx, "restored")
		cluster := classy(func(c *clusterv1.Cluster) { c.Namespace = "restored" })
		kit.Create(ctx, admin, cluster)
		deleteAtEnd(cluster)
		shouldBeAvailable(ctx, cluster)
		Expect(tenantOf(ctx, cluster).Create(ctx, kit.Namespace("shop"))).To(Succeed())
		vc := virtualCluster(cluster)
		Expect(kit.Get(ctx, admin, vc)).To(Succeed())
		before := must(kit.Read(ctx, admin, controlPlane(cluster))())
		Expect(before.Annotations).To(HaveKey(clusterctlv1.BlockMoveAnnotation))

		dir := kit.TempDir()
		shouldHaveNoShim(ctx, cluster)
		here.clusterctl(ctx, "move", "-n", cluster.Namespace, "--to-directory", dir)
		deleteAsMoved(ctx, cluster)
		Consistently(kit.Read(ctx, admin, vc)).Should(HaveField("DeletionTimestamp", BeNil()))

		here.clusterctl(ctx, "move", "--from-directory", dir)
		shouldBeAvailable(ctx, cluster)
		after := must(kit.Read(ctx, admin, controlPlane(cluster))())
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(kit.Read(ctx, admin, virtualCluster(cluster))()).To(HaveField("UID", vc.UID))
		Expect(tenantOf(ctx, cluster).Get(ctx, client.ObjectKey{Name: "shop"}, &corev1.Namespace{})).To(Succeed())
		Eventually(kit.Read(ctx, admin, kubeconfig(cluster))).Should(HaveField("OwnerReferences", ContainElement(HaveField("UID", after.UID))))
		shouldLeaveNothing(ctx, cluster)
	}, NodeTimeout(specTimeout))

	It("is not moved to another management cluster, of which clusterctl reports an error", func(ctx SpecContext) {
		if os.Getenv(longer) == "" {
			Skip("set " + longer + ": clusterctl waits for six minutes")
		}
		kit.Create(ctx, admin, kit.Namespace("blocked"))
		here.installClass(ctx, "blocked")
		cluster := classy(func(c *clusterv1.Cluster) { c.Namespace = "blocked" })
		kit.Create(ctx, admin, cluster)
		deleteAtEnd(cluster)
		shouldBeAvailable(ctx, cluster)
		there := startManagement(ctx, "--nodes=0", "--syncer=false", "--agent=false")
		there.installCore(ctx)
		there.startProviders(ctx)
		_, err := here.runClusterctl(ctx, "move", "-n", cluster.Namespace, "--to-kubeconfig", there.kubeconfig())
		Expect(err).To(MatchError(ContainSubstring("error waiting for resources to be ready to move")))
		kit.ShouldStayAbsent(ctx, there.admin, cluster)

		By("going on when it is resumed")
		Expect(kit.Get(ctx, admin, cluster)).To(Succeed())
		Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))
		kit.Edit(ctx, admin, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
		shouldBeAvailable(ctx, cluster)
	}, NodeTimeout(4*specTimeout))

	It("is lost in another management cluster, and lives on in its own", func(ctx SpecContext) {
		kit.Create(ctx, admin, kit.Namespace("moved"))
		here.installClass(ctx, "moved")
		cluster := classy(func(c *clusterv1.Cluster) { c.Namespace = "moved" })
		kit.Create(ctx, admin, cluster)
		deleteAtEnd(cluster)
		shouldBeAvailable(ctx, cluster)
		vc := virtualCluster(cluster)
		Expect(kit.Get(ctx, admin, vc)).To(Succeed())
		dir := kit.TempDir()
		shouldHaveNoShim(ctx, cluster)
		here.clusterctl(ctx, "move", "-n", cluster.Namespace, "--to-directory", dir)

		By("arriving in another one")
		there := startManagement(ctx, "--nodes=0", "--syncer=false", "--agent=false")
		there.installCore(ctx)
		there.startProviders(ctx)
		there.clusterctl(ctx, "move", "--from-directory", dir, "--to-kubeconfig", there.kubeconfig())
		Eventually(kit.Read(ctx, there.admin, controlPlane(cluster))).WithTimeout(tenantTimeout).Should(And(
			condition(controlplanev1.ConditionVirtualClusterUpToDate, metav1.ConditionFalse, "move the Cluster back to where it is"),
			HaveField("Status.Conditions", ContainElement(HaveField("Reason", controlplanev1.ReasonVirtualClusterLost))),
			condition(controlplanev1.ConditionAvailable, metav1.ConditionFalse, "")))
		kit.ShouldStayAbsent(ctx, there.admin, virtualCluster(cluster))

		By("being deleted there")
		Expect(there.admin.Delete(ctx, controlPlane(cluster))).To(Succeed())
		kit.ShouldVanish(ctx, there.admin, controlPlane(cluster))
		Expect(kit.Read(ctx, admin, vc)()).To(HaveField("DeletionTimestamp", BeNil()))
		shouldBeAvailable(ctx, cluster)
	}, NodeTimeout(specTimeout))
})

// shouldHaveNoShim waits until the objects of a Cluster are owned by the Cluster
// alone. Cluster API's topology controller gives them a Secret as the first
// owner, and clusterctl leaves out, without an error, what has an owner that it
// does not move.
func shouldHaveNoShim(ctx context.Context, cluster *clusterv1.Cluster) {
	GinkgoHelper()
	for _, obj := range []client.Object{controlPlane(cluster), infrastructure(cluster)} {
		Eventually(func() ([]metav1.OwnerReference, error) {
			err := kit.Get(ctx, admin, obj)
			return obj.GetOwnerReferences(), err
		}).WithTimeout(tenantTimeout).Should(HaveExactElements(HaveField("Kind", "Cluster")), obj.GetName())
	}
}

// clusterctl runs the command in the management cluster, and returns what it
// prints.
func (m *management) clusterctl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := m.runClusterctl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// runClusterctl runs the command, and returns what it prints. An error has its log.
func (m *management) runClusterctl(ctx context.Context, args ...string) (string, error) {
	GinkgoHelper()
	home := kit.TempDir()
	settings := filepath.Join(home, "clusterctl.yaml")
	Expect(os.WriteFile(settings, []byte("{}"), 0o600)).To(Succeed())
	command := exec.CommandContext(ctx, os.Getenv(clusterctlBinary), append(args, "--config", settings)...)
	command.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "KUBECONFIG=" + m.kubeconfig(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true"}
	log := &strings.Builder{}
	command.Stderr = io.MultiWriter(GinkgoWriter, log)
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("clusterctl %v: %w: %s", args, err, log)
	}
	return string(out), err
}

// deleteAsMoved deletes the objects of a Cluster as clusterctl does after it has
// copied them to another management cluster.
func deleteAsMoved(ctx context.Context, cluster *clusterv1.Cluster) {
	GinkgoHelper()
	kit.Edit(ctx, admin, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	for _, obj := range []client.Object{kubeconfig(cluster), controlPlane(cluster), infrastructure(cluster), cluster} {
		kit.Edit(ctx, admin, obj, func(o client.Object) {
			o.SetAnnotations(map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""})
		})
		Expect(admin.Delete(ctx, obj)).To(Succeed())
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		Expect(client.IgnoreNotFound(admin.Patch(ctx, obj, patch))).To(Succeed())
		kit.ShouldVanish(ctx, admin, obj)
	}
}

var _ = Describe("A Cluster without a class", func() {
	It("specifies its VirtualCluster, except while it is paused", func(ctx SpecContext) {
		cluster := plain(ctx, func(c *clusterv1.Cluster, i *infrav1.NestedCluster, p *controlplanev1.NestedControlPlane) {
			c.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
				Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.200.0.0/24"}}, ServiceDomain: "red.example",
			}
			i.Spec.Weight = 3
			i.Spec.Policy = &tenancyv1alpha1.TenantPolicy{IngressHosts: []string{"*"}}
			p.Spec.Version = "1.36.3"
			p.Spec.PKIExpireDays = 30
		})
		shouldBeAvailable(ctx, cluster)
		vc := virtualCluster(cluster)
		Expect(kit.Get(ctx, admin, vc)).To(Succeed())
		Expect(vc.Spec).To(And(
			HaveField("ServiceCIDR", "10.200.0.0/24"), HaveField("ClusterDomain", "red.example"), HaveField("Weight", int32(3)),
			HaveField("KubernetesVersion", version), HaveField("PKIExpireDays", int64(30)),
			HaveField("Policy.IngressHosts", ConsistOf("*"))))

		By("pausing")
		kit.Edit(ctx, admin, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
		paused := condition(clusterv1.PausedCondition, metav1.ConditionTrue, "spec.paused")
		Eventually(kit.Read(ctx, admin, controlPlane(cluster))).Should(paused)
		Eventually(kit.Read(ctx, admin, infrastructure(cluster))).Should(paused)
		kit.Edit(ctx, admin, infrastructure(cluster), func(i *infrav1.NestedCluster) { i.Spec.Weight, i.Spec.Policy = 7, nil })
		Consistently(kit.Read(ctx, admin, vc)).Should(HaveField("Spec.Weight", int32(3)))

		By("resuming")
		kit.Edit(ctx, admin, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
		Eventually(kit.Read(ctx, admin, vc)).Should(And(HaveField("Spec.Weight", int32(7)), HaveField("Spec.Policy", BeNil())))

		By("changing what is immutable")
		kit.Edit(ctx, admin, cluster, func(c *clusterv1.Cluster) { c.Spec.ClusterNetwork.ServiceDomain = "blue.example" })
		Eventually(kit.Read(ctx, admin, controlPlane(cluster))).Should(And(
			condition(controlplanev1.ConditionVirtualClusterUpToDate, metav1.ConditionFalse, "clusterDomain is immutable"),
			condition(controlplanev1.ConditionAvailable, metav1.ConditionTrue, "")))
		shouldLeaveNothing(ctx, cluster)
	}, NodeTimeout(specTimeout))

	It("reports a version that the provisioner does not have", func(ctx SpecContext) {
		cluster := plain(ctx, func(_ *clusterv1.Cluster, _ *infrav1.NestedCluster, p *controlplanev1.NestedControlPlane) {
			p.Spec.Version = "v1.99.0"
		})
		Eventually(kit.Read(ctx, admin, cluster)).WithTimeout(tenantTimeout).Should(
			condition(clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionFalse, "1.36"))
	})

	It("never takes over a VirtualCluster of its name", func(ctx SpecContext) {
		vc := kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = 5 })
		kit.Create(ctx, admin, vc)
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, vc)).To(Succeed()) })
		cluster := plain(ctx, func(c *clusterv1.Cluster, i *infrav1.NestedCluster, p *controlplanev1.NestedControlPlane) {
			c.Name, i.Name, p.Name = vc.Name, vc.Name, vc.Name
			c.Spec.InfrastructureRef.Name, c.Spec.ControlPlaneRef.Name = vc.Name, vc.Name
		})
		Eventually(kit.Read(ctx, admin, controlPlane(cluster))).WithTimeout(tenantTimeout).Should(
			condition(controlplanev1.ConditionVirtualClusterUpToDate, metav1.ConditionFalse, "does not belong to this Cluster"))
		Expect(admin.Delete(ctx, cluster)).To(Succeed())
		Eventually(func() error { return kit.Get(ctx, admin, cluster) }).WithTimeout(tenantTimeout).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		Expect(kit.Read(ctx, admin, vc)()).To(And(
			HaveField("DeletionTimestamp", BeNil()), HaveField("Spec.Weight", int32(5)), HaveField("Labels", BeEmpty())))
		Expect(kit.Get(ctx, admin, kubeconfig(cluster))).To(MatchError(apierrors.IsNotFound, "not found"))
	}, NodeTimeout(specTimeout))

	It("does not replace a lost tenant by an empty one", func(ctx SpecContext) {
		cluster := plain(ctx, nil)
		shouldBeAvailable(ctx, cluster)
		vc := virtualCluster(cluster)
		Expect(admin.Delete(ctx, vc)).To(Succeed())
		Eventually(kit.Read(ctx, admin, controlPlane(cluster))).WithTimeout(tenantTimeout).Should(
			condition(controlplanev1.ConditionVirtualClusterUpToDate, metav1.ConditionFalse, "does not exist in this management cluster"))
		kit.ShouldStayAbsent(ctx, admin, vc)
		kit.Edit(ctx, admin, controlPlane(cluster), func(p *controlplanev1.NestedControlPlane) {
			delete(p.Annotations, controlplanev1.VirtualClusterUIDAnnotation)
		})
		shouldBeAvailable(ctx, cluster)
	}, NodeTimeout(specTimeout))

	It("keeps a Secret that someone else created", func(ctx SpecContext) {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("c%d", serial+1)}}
		secret := kubeconfig(cluster)
		secret.StringData = map[string]string{"value": "theirs"}
		kit.Create(ctx, admin, secret)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, secret))).To(Succeed()) })
		cluster = plain(ctx, nil)
		Eventually(kit.Read(ctx, admin, controlPlane(cluster))).WithTimeout(tenantTimeout).Should(
			condition(controlplanev1.ConditionKubeconfigAvailable, metav1.ConditionFalse, "delete it"))
		Expect(kit.Read(ctx, admin, secret)()).To(HaveField("Data", HaveKeyWithValue("value", []byte("theirs"))))
	}, NodeTimeout(specTimeout))
})

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}
