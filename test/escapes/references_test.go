package escapes

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What the platform has in a tenant's namespace", Ordered, func() {
	const (
		ns     = "references"
		own    = "platform" // what the platform's objects are called
		theirs = "not this cluster's"
		review = "review: a pod names what the platform put into the super namespace"
	)
	var mallory *local.Tenant

	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta(name), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("platform-offers"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}}
	}
	web := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}},
		}}
	}
	// named is a pod that is rejected for a reference.
	named := func(ctx context.Context, name string, change func(*corev1.PodSpec)) {
		GinkgoHelper()
		p := kit.Pod(ns, name, func(p *corev1.Pod) { change(&p.Spec) })
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, theirs)
	}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "platform", VolumeSource: source}} }
	}

	BeforeAll(func(ctx SpecContext) {
		offerIngressClass(ctx)
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
		class := &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "platform-offers", Labels: map[string]string{names.Public: "true"}},
			Provisioner: "example.com/none",
		}
		secret := &corev1.Secret{ObjectMeta: meta(own), StringData: map[string]string{"password": "hunter2"}}
		config := &corev1.ConfigMap{ObjectMeta: meta(own), Data: map[string]string{"key": "value"}}
		account := &corev1.ServiceAccount{ObjectMeta: meta(own)}
		for _, obj := range []client.Object{secret, config, account, claim(own), web(own)} {
			obj.SetNamespace(mallory.Super(ns))
			kit.Create(ctx, super.Client, obj)
		}
		kit.Create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		kit.ShouldExist(ctx, mallory.Client, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}})
	})

	attack("a variable of a container out of the platform's Secret", review, func(ctx SpecContext) {
		named(ctx, "variable", func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: own}, Key: "password", Optional: new(true),
			}}}}
		})
	})

	attack("all variables of an init container out of the platform's ConfigMap", review, func(ctx SpecContext) {
		named(ctx, "variables", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", Image: "example/app:1", EnvFrom: []corev1.EnvFromSource{{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: own}},
			}}}}
		})
	})

	attack("a volume that projects the platform's Secret among others", review, func(ctx SpecContext) {
		named(ctx, "projected", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: own}, Optional: new(true)}},
		}}}))
	})

	attack("a Secret of the same name, for the pod to be given the platform's", review, func(ctx SpecContext) {
		second := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super(ns), Name: "second"}}
		kit.Create(ctx, super.Client, second)
		kit.Create(ctx, mallory.Client, &corev1.Secret{ObjectMeta: meta("second")})
		named(ctx, "shadow", volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "second"}}))
	})

	attack("the platform's claim", review, func(ctx SpecContext) {
		named(ctx, "claim", volume(corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: own, ReadOnly: true},
		}))
	})

	attack("a claim of the same name, for the pod to be given the platform's", review, func(ctx SpecContext) {
		taken := claim("data")
		taken.Namespace = mallory.Super(ns)
		kit.Create(ctx, super.Client, taken)
		kit.Create(ctx, mallory.Client, claim("data"))
		named(ctx, "data", volume(corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}))
	})

	attack("an ephemeral volume whose claim would be called like the platform's", review, func(ctx SpecContext) {
		taken := claim("scratch-platform")
		taken.Namespace = mallory.Super(ns)
		kit.Create(ctx, super.Client, taken)
		named(ctx, "scratch", volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim("").Spec},
		}}))
	})

	attack("images pulled with the platform's Secret", review, func(ctx SpecContext) {
		named(ctx, "pull", func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: own}} })
	})

	attack("a service account that pulls images with the platform's Secret", review, func(ctx SpecContext) {
		account := &corev1.ServiceAccount{ObjectMeta: meta("puller"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: own}}}
		kit.Create(ctx, mallory.Client, account)
		shouldBeRejected(ctx, mallory, account, theirs)
	})

	attack("a service account that comes to the platform's Secret when it exists", review, func(ctx SpecContext) {
		account := &corev1.ServiceAccount{ObjectMeta: meta("later")}
		kit.Create(ctx, mallory.Client, account)
		down := kit.SuperOf(mallory, account)
		kit.ShouldExist(ctx, super.Client, down)
		kit.Edit(ctx, mallory.Client, account, func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: own}}
		})
		Eventually(kit.Rejections(ctx, mallory, account)).Should(ContainElement(ContainSubstring(theirs)))
		Consistently(kit.Read(ctx, super.Client, down)).Should(HaveField("ImagePullSecrets", BeEmpty()))
	})

	attack("a pod under the platform's service account", "AWS and GKE documentation: accounts whose annotations give cloud roles",
		func(ctx SpecContext) {
			kit.Create(ctx, mallory.Client, &corev1.ServiceAccount{ObjectMeta: meta(own)})
			named(ctx, "account", func(s *corev1.PodSpec) { s.ServiceAccountName = own })
			account := kit.SuperOf(mallory, &corev1.ServiceAccount{ObjectMeta: meta(own)})
			Expect(kit.Get(ctx, super.Client, account)).To(Succeed())
			Expect(account.Annotations).NotTo(HaveKey(names.UID), "the platform's account is not adopted")
		})

	attack("a debug container that reads the platform's Secret, in a pod that runs", review, func(ctx SpecContext) {
		p := kit.Pod(ns, "debug")
		kit.Create(ctx, mallory.Client, p)
		down := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, down)
		Eventually(func(ctx context.Context) error {
			// The pod changes meanwhile: it is bound and runs.
			if err := kit.Get(ctx, mallory.Client, p); err != nil {
				return err
			}
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "look", Image: "example/app:1", EnvFrom: []corev1.EnvFromSource{{
					SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: own}},
				}},
			}}}
			return mallory.Client.SubResource("ephemeralcontainers").Update(ctx, p)
		}).WithContext(ctx).Should(Succeed())
		Eventually(kit.Rejections(ctx, mallory, p)).Should(ContainElement(ContainSubstring(theirs)))
		Consistently(kit.Read(ctx, super.Client, down)).Should(HaveField("Spec.EphemeralContainers", BeEmpty()))
	})

	attack("an Ingress with the platform's certificate", review, func(ctx SpecContext) {
		ingress := &networkingv1.Ingress{ObjectMeta: meta("certificate"), Spec: networkingv1.IngressSpec{
			IngressClassName: new(sharedIngress),
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
			TLS: []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: own}},
		}}
		kit.Create(ctx, mallory.Client, ingress)
		shouldBeRejected(ctx, mallory, ingress, theirs)
	})

	attack("an Ingress that leads to the platform's Service", review, func(ctx SpecContext) {
		ingress := &networkingv1.Ingress{ObjectMeta: meta("service"), Spec: networkingv1.IngressSpec{
			IngressClassName: new(sharedIngress),
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: own, Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		}}
		kit.Create(ctx, mallory.Client, ingress)
		shouldBeRejected(ctx, mallory, ingress, theirs)
	})

	attack("a volume that is filled from the platform's claim", "Kubernetes documentation: CSI Volume Cloning", func(ctx SpecContext) {
		clone := claim("clone")
		clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: own}
		kit.Create(ctx, mallory.Client, clone)
		shouldBeRejected(ctx, mallory, clone, theirs)
	})

	attack("a volume that is filled from a snapshot of the platform's", "Kubernetes documentation: Volume Snapshots", func(ctx SpecContext) {
		clone := claim("snapshot")
		clone.Spec.DataSource = &corev1.TypedLocalObjectReference{
			APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: own,
		}
		kit.Create(ctx, mallory.Client, clone)
		shouldBeRejected(ctx, mallory, clone, "objects of this kind are not synced")
	})

	attack("claims that are filled from each other, to have the syncer's workers wait for each other for ever",
		"review: locks that are taken in the order that a tenant says", func(ctx SpecContext) {
			for _, pair := range [][2]string{{"first", "other"}, {"other", "first"}, {"itself", "itself"}} {
				c := claim(pair[0])
				c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: pair[1]}
				kit.Create(ctx, mallory.Client, c)
			}
			for _, name := range []string{"first", "other", "itself", "after"} {
				if name == "after" {
					kit.Create(ctx, mallory.Client, claim(name))
				}
				kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, claim(name)))
			}
		})
})

var _ = Describe("The tokens of another pod", Ordered, func() {
	const (
		ns       = "tokens"
		reserved = "the name is reserved"
		review   = "review: the Secrets that the syncer keeps beside pods"
	)
	var mallory *local.Tenant
	tokens := names.TokenSecret("victim")

	BeforeAll(func(ctx SpecContext) {
		offerIngressClass(ctx)
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a volume of the Secret that holds the tokens of another pod", review, func(ctx SpecContext) {
		p := kit.Pod(ns, "reader", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "tokens", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: tokens, Optional: new(true)},
			}}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, reserved)
	})

	attack("a Secret under the name of those of another pod's tokens", review, func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: tokens}})
		p := kit.Pod(ns, "keeper", func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: tokens},
			}}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, reserved)
		secret := kit.SuperOf(mallory, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: tokens}})
		kit.ShouldStayAbsent(ctx, super.Client, secret)
	})
})
