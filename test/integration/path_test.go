package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The path of a tenant's objects", func() {
	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		Describe("with isolation "+string(isolation), Ordered, func() {
			const ns = "shop"
			var (
				red *local.Tenant
				cm  = configMap(ns, "web", map[string]string{"color": "red"})
				sec = secret(ns, "web", map[string]string{"password": "secret"})
				svc = service(ns, "web")
				dep = deployment(ns, "web", 3, withConfigMap("web"), withSecret("web"))
			)

			BeforeAll(func(ctx SpecContext) {
				red = tenant(ctx, kit.WithIsolation(isolation))
				kit.Create(ctx, red.Client, kit.Namespace(ns), cm, sec, svc)
			})

			It("syncs a namespace down, and ConfigMaps and Secrets only when a pod needs them", func(ctx SpecContext) {
				down := kit.SuperOf(red, kit.Namespace(ns))
				kit.ShouldExist(ctx, super.Client, down)
				Expect(down.Annotations).To(HaveKeyWithValue(names.VCUID, string(red.VC.UID)))
				Expect(down.Labels).To(HaveKeyWithValue(names.VCName, red.VC.Name))
				kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, svc))
				for _, obj := range []client.Object{kit.SuperOf(red, cm), kit.SuperOf(red, sec)} {
					kit.ShouldStayAbsent(ctx, super.Client, obj)
				}
			})

			It("runs a Deployment's pods in the super cluster and syncs their status up", func(ctx SpecContext) {
				kit.Create(ctx, red.Client, dep)
				Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(3))
				Expect(podNames(ctx, super.Client, red.Super(ns))).To(ConsistOf(must(podNames(ctx, red.Client, ns))))
				for _, p := range must(pods(ctx, red.Client, ns)) {
					Expect(p.Spec.NodeName).NotTo(BeEmpty())
					Expect(p.Status.PodIP).NotTo(BeEmpty())
				}
			})

			It("syncs down the references of pods, with the tenant's root CA under another name", func(ctx SpecContext) {
				down := kit.SuperOf(red, cm)
				kit.ShouldExist(ctx, super.Client, down)
				Expect(down.Data).To(HaveKeyWithValue("color", "red"))
				downSecret := kit.SuperOf(red, sec)
				kit.ShouldExist(ctx, super.Client, downSecret)
				Expect(downSecret.Data).To(HaveKeyWithValue("password", []byte("secret")))

				own := configMap(ns, "kube-root-ca.crt", nil)
				Expect(kit.Get(ctx, red.Client, own)).To(Succeed())
				moved := configMap(red.Super(ns), "tenant-kube-root-ca.crt", nil)
				kit.ShouldExist(ctx, super.Client, moved)
				Expect(moved.Data).To(Equal(own.Data))
			})

			It("keeps the labels of selectors, and adds those for network policies", func(ctx SpecContext) {
				down := kit.SuperOf(red, svc)
				kit.ShouldExist(ctx, super.Client, down)
				Expect(down.Spec.Selector).To(Equal(svc.Spec.Selector))
				for _, p := range must(pods(ctx, super.Client, red.Super(ns))) {
					Expect(p.Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "web"))
					Expect(p.Labels).To(HaveKeyWithValue("arktos.futurewei.com/network", "default"))
					Expect(p.Labels).To(HaveKeyWithValue(names.Cluster, red.Key()))
				}
			})

			It("mounts no token of the super cluster in copies", func(ctx SpecContext) {
				for _, p := range must(pods(ctx, super.Client, red.Super(ns))) {
					Expect(p.Spec.AutomountServiceAccountToken).To(Equal(new(false)))
					for _, v := range p.Spec.Volumes {
						if v.Projected == nil {
							continue
						}
						for _, source := range v.Projected.Sources {
							Expect(source.ServiceAccountToken).To(BeNil())
						}
					}
				}
			})

			It("syncs up the nodes of the pods, and only those", func(ctx SpecContext) {
				used := map[string]bool{}
				for _, p := range must(pods(ctx, red.Client, ns)) {
					used[p.Spec.NodeName] = true
				}
				nodes := &corev1.NodeList{}
				Expect(red.Client.List(ctx, nodes)).To(Succeed())
				shown := map[string]bool{}
				for _, n := range nodes.Items {
					shown[n.Name] = true
					Expect(n.Status.Capacity).NotTo(BeEmpty())
					Expect(n.Status.Addresses).To(BeEmpty())
				}
				Expect(shown).To(Equal(used))
			})

			It("syncs up the events of the pods in the tenant's own terms", func(ctx SpecContext) {
				Eventually(func(g Gomega) {
					events := &corev1.EventList{}
					g.Expect(red.Client.List(ctx, events, client.InNamespace(ns))).To(Succeed())
					scheduled := map[string]string{}
					for _, e := range events.Items {
						if e.Reason == "Scheduled" {
							scheduled[string(e.InvolvedObject.UID)] = e.Message
						}
					}
					all, err := pods(ctx, red.Client, ns)
					g.Expect(err).NotTo(HaveOccurred())
					for _, p := range all {
						g.Expect(scheduled).To(HaveKeyWithValue(string(p.UID), ContainSubstring(ns+"/"+p.Name)))
					}
				}).WithContext(ctx).Should(Succeed())
			})

			It("syncs updates: data, labels, images, ports", func(ctx SpecContext) {
				kit.Edit(ctx, red.Client, cm, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"color": "crimson"} })
				kit.Edit(ctx, red.Client, sec, func(s *corev1.Secret) { s.Data["password"] = []byte("changed") })
				kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 })
				p := must(pods(ctx, red.Client, ns))[0]
				kit.Edit(ctx, red.Client, &p, func(p *corev1.Pod) {
					p.Labels["tier"] = "front"
					p.Spec.Containers[0].Image = "example/app:2"
				})
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, cm))).Should(HaveField("Data", HaveKeyWithValue("color", "crimson")))
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, sec))).Should(HaveField("Data", HaveKeyWithValue("password", []byte("changed"))))
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, svc))).
					Should(HaveField("Spec.Ports", ContainElement(HaveField("Port", int32(8080)))))
				down := kit.Read(ctx, super.Client, kit.SuperOf(red, &p))
				Eventually(down).Should(HaveField("Labels", HaveKeyWithValue("tier", "front")))
				Eventually(down).Should(HaveField("Spec.Containers", ContainElement(HaveField("Image", "example/app:2"))))

				kit.Edit(ctx, red.Client, &p, func(p *corev1.Pod) { delete(p.Labels, "tier") })
				Eventually(down).ShouldNot(HaveField("Labels", HaveKey("tier")))
			})

			It("scales down: the pods are gone in the super cluster first and then in the tenant", func(ctx SpecContext) {
				kit.Edit(ctx, red.Client, dep, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) })
				Eventually(podNames).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(1))
				Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).Should(HaveLen(1))
			})

			It("deletes copies to which no pod refers any more", func(ctx SpecContext) {
				Expect(red.Client.Delete(ctx, dep, client.PropagationPolicy("Background"))).To(Succeed())
				Eventually(podNames).WithContext(ctx).WithArguments(red.Client, ns).Should(BeEmpty())
				kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, cm))
				kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, sec))
			})

			It("deletes the virtual nodes when no pod is left", func(ctx SpecContext) {
				Eventually(func(g Gomega) {
					nodes := &corev1.NodeList{}
					g.Expect(red.Client.List(ctx, nodes)).To(Succeed())
					g.Expect(nodes.Items).To(BeEmpty())
				}).WithContext(ctx).Should(Succeed())
			})

			It("deletes the namespace with all its objects", func(ctx SpecContext) {
				kit.Create(ctx, red.Client, kit.Pod(ns, "last"))
				Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("last"))
				Expect(red.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
				// Each cluster's namespace controller waits before its first attempt,
				// and again for the pod.
				Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, kit.Namespace(ns))).WithTimeout(3 * kit.Soon).
					Should(MatchError(apierrors.IsNotFound, "not found"))
				kit.ShouldVanish(ctx, red.Client, kit.Namespace(ns))
			})
		})
	}
})
