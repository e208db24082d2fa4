package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A tenant's Service", func() {
	It("leads to the pods that are ready", Label(smoke), func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web := deployment(server(ns, "web"), 2)
		front := service(ns, "web")
		create(ctx, red, web, front)
		Eventually(read(red, web)).WithContext(ctx).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(2)))
		Eventually(readyEndpoints(red.Client, front)).WithContext(ctx).Should(Equal(2))
		shouldReach(ctx, red, ns, net.JoinHostPort(front.Spec.ClusterIP, "80"))
	})

	It("does not lead to a pod that is not ready", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		p := server(ns, "web")
		p.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromInt32(port + 1) // where no server answers
		front := service(ns, "web")
		create(ctx, red, p, front)
		Eventually(read(red, p)).WithContext(ctx).Should(HaveField("Status.Phase", corev1.PodRunning))
		Consistently(readyEndpoints(red.Client, front)).WithContext(ctx).WithTimeout(soon / 15).Should(BeZero())
	})

	It("is reached from outside at the port of the node, and by its load balancer's address", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web := server(ns, "web")
		byNode, balanced := service(ns, "web"), service(ns, "web")
		byNode.Spec.Type = corev1.ServiceTypeNodePort
		balanced.Name, balanced.Spec.Type = "balanced", corev1.ServiceTypeLoadBalancer
		create(ctx, red, web, byNode, balanced)
		shouldBeReady(ctx, red, web)

		url := fmt.Sprintf("http://%s/hostname", net.JoinHostPort(nodeAddress(ctx), fmt.Sprint(byNode.Spec.Ports[0].NodePort)))
		Eventually(page).WithContext(ctx).WithArguments(url).Should(Equal("web"))

		const address = "198.51.100.7" // the address of a load balancer only
		down := &corev1.Service{}
		Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: red.Super(ns), Name: balanced.Name}, down)).To(Succeed())
		down.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address, IPMode: new(corev1.LoadBalancerIPModeVIP)}}
		Expect(super.Client.Status().Update(ctx, down)).To(Succeed())
		Eventually(read(red, balanced)).WithContext(ctx).
			Should(HaveField("Status.LoadBalancer.Ingress", ConsistOf(HaveField("IP", address))))
		shouldReach(ctx, red, ns, net.JoinHostPort(address, "80"))
	})
})

// nodeAddress is where this machine reaches the node.
func nodeAddress(ctx context.Context) string {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(super.Client.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(1))
	return nodes.Items[0].Status.Addresses[0].Address
}

// page is what a web server answers.
func page(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// readyEndpoints counts the ready endpoints of a Service.
func readyEndpoints(c client.Client, of *corev1.Service) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		slices := &discoveryv1.EndpointSliceList{}
		err := c.List(ctx, slices, client.InNamespace(of.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: of.Name})
		ready := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		return ready, err
	}
}

func service(ns, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}
}

func deployment(p *corev1.Pod, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec},
		},
	}
}
