package escapes

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withVolume returns a change that has a pod mount a volume.
func withVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}} }
}

var _ = Describe("The volumes of a pod", Ordered, func() {
	const ns = "volumes"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	// rejected is an attack by a pod that mounts a volume.
	rejected := func(text, source, name string, volume corev1.VolumeSource, why string) {
		attack(text, source, func(ctx SpecContext) {
			p := kit.Pod(ns, name, withVolume(volume))
			kit.Create(ctx, mallory.Client, p)
			shouldBeRejected(ctx, mallory, p, why)
		})
	}
	rejected("a share of the platform's file server, inline", "Kubernetes documentation: Volumes, nfs", "nfs",
		corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/"}}, "spec.volumes[0].nfs: Forbidden")
	rejected("a disk of the platform's storage network, inline", "Kubernetes documentation: Volumes, iscsi", "iscsi",
		corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2001-04.com.example:disk"}},
		"spec.volumes[0].iscsi: Forbidden")
	rejected("a LUN of the node's host bus adapter", "Kubernetes documentation: Volumes, fc", "fc",
		corev1.VolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"3600508b400105e210000900000490000"}}}, "spec.volumes[0].fc: Forbidden")
	rejected("a program on the node that mounts", "Kubernetes documentation: Volumes, flexVolume", "flex",
		corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/mount"}}, "spec.volumes[0].flexVolume: Forbidden")
	rejected("git run as root by the kubelet", "CVE-2024-10220", "git",
		corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Repository: "https://example.com/hooks"}}, "spec.volumes[0].gitRepo: Forbidden")
	rejected("a disk of the platform's cloud account, by its name", "Kubernetes documentation: Volumes, awsElasticBlockStore", "cloud",
		corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0123456789"}},
		"spec.volumes[0].awsElasticBlockStore: Forbidden")
	rejected("an inline volume of a driver that is not offered", "Kubernetes documentation: CSI ephemeral volumes, security considerations",
		"csi", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io"}},
		`spec.volumes[0].csi.driver is "secrets-store.csi.k8s.io", which the super cluster does not offer`)

	attack("the platform's default storage, by a claim without a class", "Kubernetes documentation: default StorageClass", func(ctx SpecContext) {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{
				Name: "platform-default", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
			},
			Provisioner: "storage.example.com",
		}
		kit.Create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "unclassed"}, Spec: claimSpec("")}
		claim.Spec.StorageClassName = nil
		kit.Create(ctx, mallory.Client, claim)
		shouldBeRejected(ctx, mallory, claim, `spec.storageClassName is "", which names no class`)
	})

	attack("an ephemeral volume of a class that is not offered", "review: the claim is made past the tenant's hands", func(ctx SpecContext) {
		p := kit.Pod(ns, "scratch", withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec("platform-only")},
		}}))
		kit.Create(ctx, mallory.Client, p)
		made := &corev1.PersistentVolumeClaim{}
		made.Namespace, made.Name = ns, "scratch-data"
		kit.ShouldExist(ctx, mallory.Client, made)
		shouldBeRejected(ctx, mallory, made, `spec.storageClassName is "platform-only", which the super cluster does not offer`)
		copied := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.Volumes[0].Ephemeral).To(BeNil(), "the super cluster would make a claim of its own")
	})
})

var _ = Describe("What a pod makes its node do", Ordered, func() {
	const ns = "chores"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a probe that makes the kubelet request the metadata service", "CVE-2020-8555 and Kubernetes #99425: probes with a host", func(ctx SpecContext) {
		p := kit.Pod(ns, "probe", func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80), Path: "/latest/meta-data"},
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.containers[0].livenessProbe.httpGet.host: Forbidden")
	})

	attack("a hook that makes the kubelet request the node's loopback", "review: the neighbour of probes with a host", func(ctx SpecContext) {
		p := kit.Pod(ns, "hook", func(p *corev1.Pod) {
			p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{
				HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1", Port: intstr.FromInt32(10248), Path: "/healthz"},
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.containers[0].lifecycle.postStart.httpGet.host: Forbidden")
	})

	attack("a scan of the node's network by probes of a sidecar", "review: the neighbour of probes with a host", func(ctx SpecContext) {
		p := kit.Pod(ns, "scan", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{
				Name: "side", Image: "example/side:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intstr.FromInt32(2379)},
				}},
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.initContainers[0].startupProbe.tcpSocket.host: Forbidden")
	})

	attack("a looser seccomp profile that the node has for others", "Pod Security Standards: baseline allows Localhost", func(ctx SpecContext) {
		p := kit.Pod(ns, "seccomp", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{
				Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("profiles/agent.json"),
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.securityContext.seccompProfile.type: Forbidden")
	})

	attack("a debug container with what the pod itself may not have", "peers: admission that looks at new pods alone", func(ctx SpecContext) {
		p := kit.Pod(ns, "debug")
		kit.Create(ctx, mallory.Client, p)
		copied := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, copied)
		debugger := func(name string, security *corev1.SecurityContext) corev1.EphemeralContainer {
			return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: name, Image: "example/debug:1", SecurityContext: security,
			}}
		}
		Eventually(func(ctx SpecContext) error {
			if err := kit.Get(ctx, mallory.Client, p); err != nil {
				return err
			}
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				debugger("loose", &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{
					Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("agent"),
				}}),
				debugger("privileged", &corev1.SecurityContext{Privileged: new(true)}),
				debugger("plain", nil),
			}
			return mallory.Client.SubResource("ephemeralcontainers").Update(ctx, p)
		}).WithContext(ctx).Should(Succeed())
		Eventually(kit.Rejections(ctx, mallory, p)).
			Should(ContainElement(ContainSubstring("spec.ephemeralContainers[0].securityContext.appArmorProfile")))
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.EphemeralContainers", ConsistOf(HaveField("Name", "plain"))))
		Consistently(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.EphemeralContainers", ConsistOf(HaveField("Name", "plain"))))
	})
})

var _ = Describe("The place of a pod", Ordered, func() {
	const ns = "places"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a scheduler of the platform's own", "review: schedulerName was synced", func(ctx SpecContext) {
		p := kit.Pod(ns, "scheduler", func(p *corev1.Pod) { p.Spec.SchedulerName = "platform-scheduler" })
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, `spec.schedulerName: Unsupported value: "platform-scheduler"`)
	})

	attack("nodes that a taint keeps for another tenant", "review: tolerations of any key were synced", func(ctx SpecContext) {
		p := kit.Pod(ns, "tolerant", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{
				{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "blue"}, {Operator: corev1.TolerationOpExists},
			}
		})
		kit.Create(ctx, mallory.Client, p)
		copied := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.Tolerations).To(HaveEach(HaveField("Key", HavePrefix("node.kubernetes.io/"))))

		By("adding it to the pod that runs")
		kit.Edit(ctx, mallory.Client, p, func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
			p.Spec.Containers[0].Image = "example/app:2"
		})
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.Containers", ConsistOf(HaveField("Image", "example/app:2"))))
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Spec.Tolerations).To(HaveEach(HaveField("Key", HavePrefix("node.kubernetes.io/"))))
	})
})

// claimSpec returns a claim for a small volume of a class.
func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: new(class),
		Resources:        corev1.VolumeResourceRequirements{Requests: kit.Amounts("storage", "1Gi")},
	}
}
