package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// secretOf returns texts that a tenant must not find anywhere, and their
// meaning. It excludes the names of the super cluster's nodes, since a tenant
// sees the nodes of its pods, and the platform's names of offered classes and
// quotas.
func secretOf(red, blue *local.Tenant) map[string]string {
	GinkgoHelper()
	host, err := os.Hostname()
	Expect(err).NotTo(HaveOccurred())
	return map[string]string{
		red.Key():                   "the tenant's cluster key, the prefix of all its namespaces in the super cluster",
		string(red.VC.UID):          "the UID of its VirtualCluster",
		blue.Key():                  "another tenant's cluster key",
		blue.VC.Name:                "another tenant's name",
		string(blue.VC.UID):         "the UID of another tenant's VirtualCluster",
		platformsOwn:                "a private field of a class or volume",
		"-" + host + `"`:            "the host of a component of the super cluster",
		names.VCUID:                 "an annotation of VirtualCluster",
		names.AdminKubeconfigSecret: "the Secret with the admin's kubeconfig",
	}
}

// findings returns the places with a text that a tenant must not find, and the
// number of inspected objects.
func findings(ctx context.Context, t *local.Tenant, secrets map[string]string) ([]string, int) {
	GinkgoHelper()
	looked := 0
	var found []string
	Expect(local.EachObject(ctx, t.Config, func(of schema.GroupVersionResource, obj *unstructured.Unstructured) {
		looked++
		data, err := json.Marshal(obj)
		Expect(err).NotTo(HaveOccurred())
		for secret, what := range secrets {
			if at := strings.Index(string(data), secret); at >= 0 {
				found = append(found, fmt.Sprintf("%s %s/%s has %s: …%s…",
					of.Resource, obj.GetNamespace(), obj.GetName(), what, data[max(at-80, 0):min(at+len(secret)+80, len(data))]))
			}
		}
	})).To(Succeed())
	return found, looked
}

// told returns a condition, as the super cluster's controllers write them, with
// its own names in the message.
func told(message string) metav1.Condition {
	return metav1.Condition{
		Type: "platform.example.com/Told", Status: metav1.ConditionTrue, Reason: "Told", Message: message, LastTransitionTime: metav1.Now(),
	}
}

var _ = Describe("A tenant that reads everything there is to read", Ordered, func() {
	const ns, long = "leaks", "leaks-of-a-namespace-whose-name-is-as-long-as-such-names-may-be"
	var (
		red, blue *local.Tenant
		o         offer
	)

	BeforeAll(func(ctx SpecContext) {
		allowCustom(ctx)
		kit.Create(ctx, super.Client, definition(gears), definition(catalogs))
		DeferCleanup(func(ctx SpecContext) { undefine(ctx, gears, catalogs) })
		o = offerAll(ctx, 8)
		red = tenant(ctx, withCustom(tenancyv1alpha1.SyncDown, gears), withCustom(tenancyv1alpha1.SyncUp, catalogs))
		blue = tenant(ctx)
		for _, t := range []*local.Tenant{red, blue} {
			populate(ctx, t, o, ns, 1)
			shouldBePopulated(ctx, t)
		}
		kit.Create(ctx, red.Client, kit.Namespace(long), service(long, "web"), kit.Pod(long, "web"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, long).Should(ConsistOf("web"))
	})

	It("finds the super cluster's reasons for rejections, in its own terms", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: red.Super(long), Name: "few"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
		}
		taken := kit.SuperOf(red, service(ns, "taken"))
		taken.Spec.ClusterIP = corev1.ClusterIPNone // the tenant may not choose addresses
		kit.Create(ctx, super.Client, quota, taken)
		Eventually(kit.Read(ctx, super.Client, quota)).Should(HaveField("Status.Hard", Not(BeEmpty())))
		external := service(ns, "external")
		external.Spec.ExternalIPs = []string{"192.0.2.1"}
		for _, obj := range []client.Object{
			kit.Pod(long, "too-many"),
			kit.Pod(ns, "privileged", func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			}),
			kit.Pod(ns, "bold", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }),
			service(ns, "taken"), external,
		} {
			kit.Create(ctx, red.Client, obj)
			Eventually(kit.Rejections(ctx, red, obj)).ShouldNot(BeEmpty(), obj.GetName())
		}
	})

	It("finds the super cluster's status of its objects, in its own terms", func(ctx SpecContext) {
		down := kit.SuperOf(red, kit.Pod(ns, "x00"))
		kit.SetPodStatus(ctx, super.Client, down, func(s *corev1.PodStatus) {
			in := "in " + down.Namespace + " for " + red.Key()
			s.Message = in
			c := told(in)
			s.Conditions = append(s.Conditions, corev1.PodCondition{
				Type: corev1.PodConditionType(c.Type), Status: corev1.ConditionTrue, Reason: c.Reason, Message: in,
			})
			for i := range s.ContainerStatuses {
				s.ContainerStatuses[i].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: in, ExitCode: 1}
			}
		})
		in := "in " + ns + " for " + red.VC.Name
		up := kit.Read(ctx, red.Client, kit.Pod(ns, "x00"))
		Eventually(up).Should(And(
			HaveField("Status.Message", in),
			HaveField("Status.Conditions", ContainElement(HaveField("Message", in))),
			HaveField("Status.ContainerStatuses", ContainElement(HaveField("LastTerminationState.Terminated.Message", in)))))

		for obj, into := range map[client.Object]func(client.Object, metav1.Condition){
			service(ns, "x00"): func(obj client.Object, c metav1.Condition) {
				s := obj.(*corev1.Service)
				s.Status.Conditions = []metav1.Condition{c}
			},
			&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x00"}}: func(obj client.Object, c metav1.Condition) {
				b := obj.(*policyv1.PodDisruptionBudget)
				b.Status.Conditions = append(b.Status.Conditions, c)
			},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x00"}}: func(obj client.Object, c metav1.Condition) {
				p := obj.(*corev1.PersistentVolumeClaim)
				p.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Told", Status: corev1.ConditionTrue, Message: c.Message}}
			},
			&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x00"}}: func(obj client.Object, c metav1.Condition) {
				r := obj.(*resourcev1.ResourceClaim)
				device := r.Status.Allocation.Devices.Results[0]
				r.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
					Driver: device.Driver, Pool: device.Pool, Device: device.Device, Conditions: []metav1.Condition{c},
					Data: &runtime.RawExtension{Raw: []byte(`{"for": "` + c.Message + `"}`)},
				}}
			},
		} {
			copied := kit.SuperOf(red, obj)
			Eventually(func() error {
				if err := kit.Get(ctx, super.Client, copied); err != nil {
					return err
				}
				into(copied, told("in "+copied.GetNamespace()+" for "+red.Key()))
				return super.Client.Status().Update(ctx, copied)
			}).Should(Succeed())
			if _, makesItself := obj.(*policyv1.PodDisruptionBudget); !makesItself {
				Eventually(kit.Read(ctx, red.Client, obj)).Should(WithTransform(text, ContainSubstring(in)))
			}
		}

		gear := custom(gears, ns, "g", "red")
		kit.Create(ctx, red.Client, gear)
		copied := kit.SuperOf(red, gear)
		kit.EditStatus(ctx, super.Client, copied, func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"list": []any{map[string]any{"message": "in " + u.GetNamespace() + " for " + red.Key()}}}
		})
		Eventually(kit.Read(ctx, red.Client, gear)).Should(WithTransform(text, ContainSubstring(in)))
		catalog := custom(catalogs, "", "c-"+red.VC.Name, "of "+red.Key())
		catalog.SetLabels(map[string]string{names.Public: "true"})
		kit.Create(ctx, super.Client, catalog)
		kit.ShouldExist(ctx, red.Client, custom(catalogs, "", catalog.GetName(), ""))
	})

	It("finds events, in its own terms", func(ctx SpecContext) {
		about := kit.SuperOf(red, service(ns, "x00"))
		kit.ShouldExist(ctx, super.Client, about)
		e := eventAbout(about, "leaky")
		host, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		e.ReportingController, e.ReportingInstance, e.Action = "platform.example.com/lb", "lb-"+host, "Announce"+red.Key()
		e.Related = &corev1.ObjectReference{Kind: "Pod", Namespace: blue.Super(ns), Name: "x00"}
		e.Source = corev1.EventSource{Component: "lb", Host: "lb-" + host}
		kit.Create(ctx, super.Client, e)
		kit.ShouldExist(ctx, red.Client, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "leaky"}})
	})

	It("finds events about objects of every kind, and their updates", func(ctx SpecContext) {
		for _, k := range resources.All(resources.Agent{}, nil) {
			of := copiesOf(ctx, red, k, ns)
			if len(of) == 0 {
				continue // it is synced up, or cluster-scoped, and events are namespaced
			}
			told := eventAbout(of[0], "told-"+strings.ToLower(nameOf(k)))
			kit.Create(ctx, super.Client, told)
			shown := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: told.Name}}
			kit.ShouldExist(ctx, red.Client, shown)
			Expect(shown.Message).To(Equal("about " + ns))
			Expect(shown.InvolvedObject).To(And(
				HaveField("Kind", told.InvolvedObject.Kind), HaveField("Namespace", ns),
				HaveField("UID", types.UID(of[0].GetAnnotations()[names.UID]))))
			kit.Edit(ctx, super.Client, told, func(e *corev1.Event) { e.Count = 7 })
			Eventually(kit.Read(ctx, red.Client, shown)).Should(HaveField("Count", int32(7)))
		}
	})

	It("finds no secret of the platform", func(ctx SpecContext) {
		settle(ctx)
		found, looked := findings(ctx, red, secretOf(red, blue))
		AddReportEntry("inspected objects", looked)
		Expect(looked).To(BeNumerically(">", 100))
		Expect(found).To(BeEmpty())
	})
})
