package escapes

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What all tenants share, without a quota", Ordered, func() {
	const (
		ns     = "limits"
		review = "review: 2,600 node ports of one tenant"
	)
	var mallory *local.Tenant

	// copies counts the copies in the namespaces that the spec names.
	copies := func(ctx context.Context, list client.ObjectList, count func() int) func() (int, error) {
		return func() (int, error) {
			err := super.Client.List(ctx, list, client.InNamespace(mallory.Super(ns)))
			return count(), err
		}
	}
	exceeded := func(ctx context.Context, about client.Object) func() ([]string, error) {
		return func() ([]string, error) {
			list := &corev1.EventList{}
			if err := mallory.Client.List(ctx, list); err != nil {
				return nil, err
			}
			var messages []string
			for _, e := range list.Items {
				if e.Reason == "LimitExceeded" && e.InvolvedObject.UID == about.GetUID() {
					messages = append(messages, e.Message)
				}
			}
			return messages, nil
		}
	}
	exposed := func(name string, kind corev1.ServiceType, ports int) *corev1.Service {
		return service(ns, name, func(s *corev1.ServiceSpec) {
			s.Type, s.Ports = kind, nil
			for i := range ports {
				s.Ports = append(s.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(1000 + i)})
			}
		})
	}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{Limits: map[string]int64{
				"services.nodeports": 3, "services.loadbalancers": 1, "pods": 4,
				"namespaces": 5, // Kubernetes' own are four
			}}
		})
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		for _, name := range []string{ns, "default", "kube-system", "kube-public", "kube-node-lease"} {
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(name)))
		}
	})

	attack("all ports of the nodes", review, func(ctx SpecContext) {
		first, second := exposed("first", corev1.ServiceTypeNodePort, 2), exposed("second", corev1.ServiceTypeNodePort, 2)
		kit.Create(ctx, mallory.Client, first)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, first))
		kit.Create(ctx, mallory.Client, second)
		Eventually(exceeded(ctx, second)).Should(ContainElement(ContainSubstring("no more than 3 services.nodeports are allowed")))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, second))

		Expect(mallory.Client.Delete(ctx, first)).To(Succeed())
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, second))
	})

	attack("a Service that comes to more ports of the nodes when it exists", review, func(ctx SpecContext) {
		grows := exposed("grows", corev1.ServiceTypeClusterIP, 2)
		kit.Create(ctx, mallory.Client, grows)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, grows))
		kit.Edit(ctx, mallory.Client, grows, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
		Eventually(exceeded(ctx, grows)).Should(ContainElement(ContainSubstring("services.nodeports")))
		Consistently(kit.Read(ctx, super.Client, kit.SuperOf(mallory, grows))).Should(HaveField("Spec.Type", corev1.ServiceTypeClusterIP))
	})

	attack("load balancers, which cost the platform money", review, func(ctx SpecContext) {
		for _, name := range []string{"one", "two"} {
			s := exposed(name, corev1.ServiceTypeLoadBalancer, 1)
			s.Spec.AllocateLoadBalancerNodePorts = new(false)
			kit.Create(ctx, mallory.Client, s)
			if name == "one" {
				kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, s))
				continue
			}
			Eventually(exceeded(ctx, s)).Should(ContainElement(ContainSubstring("services.loadbalancers")))
			kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, s))
		}
	})

	attack("pods in a burst, faster than caches follow", review, func(ctx SpecContext) {
		for i := range 16 {
			kit.Create(ctx, mallory.Client, kit.Pod(ns, fmt.Sprint("burst-", i)))
		}
		list := &corev1.PodList{}
		count := copies(ctx, list, func() int { return len(list.Items) })
		Eventually(count).Should(Equal(4))
		Consistently(count).Should(Equal(4))
	})

	attack("namespaces", review, func(ctx SpecContext) {
		p := kit.Pod("another", "web")
		kit.Create(ctx, mallory.Client, kit.Namespace(p.Namespace), p)
		Eventually(exceeded(ctx, p)).Should(ContainElement(ContainSubstring("no more than 5 namespaces")))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(p.Namespace)))
	})
})
