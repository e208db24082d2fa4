package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var _ = Describe("A pod finds around it", func() {
	It("its tenant's apiserver, which knows its token", Label(smoke), func(ctx SpecContext) {
		p := pod(newNamespace(ctx, red), "client", agnhost, "inclusterclient", "--poll-interval=1")
		create(ctx, red, p)
		shouldBeReady(ctx, red, p)
		said := logs(red.Super(p.Namespace), p.Name)
		Eventually(said).WithContext(ctx).Should(ContainSubstring("authz_header="))
		Consistently(said).WithContext(ctx).WithTimeout(soon / 30).ShouldNot(ContainSubstring("status=failed"))
	})

	It("its tenant's names", Label(smoke), func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web := server(ns, "web")
		create(ctx, red, web, service(ns, "web"))
		shouldBeReady(ctx, red, web)
		shouldReach(ctx, red, ns, "web:80")
		elsewhere := newNamespace(ctx, red)
		shouldReach(ctx, red, elsewhere, fmt.Sprintf("web.%s.svc.cluster.local:80", ns))
	})

	It("the pods of a StatefulSet by their names", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		headless := service(ns, "db")
		headless.Spec.ClusterIP = corev1.ClusterIPNone
		template := server(ns, "db")
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"},
			Spec: appsv1.StatefulSetSpec{
				ServiceName: "db", Replicas: new(int32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
			},
		}
		create(ctx, red, headless, set)
		Eventually(read(red, set)).WithContext(ctx).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
		shouldReach(ctx, red, ns, fmt.Sprintf("db-0.db:%d", port))
	})

	It("its tenant's DNS again after somebody deleted it", func(ctx SpecContext) {
		dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
		Eventually(get).WithContext(ctx).WithArguments(red, dns).Should(Succeed())
		was := dns.UID
		Expect(red.Client.Delete(ctx, dns)).To(Succeed())
		Eventually(read(red, dns)).WithContext(ctx).Should(And(
			HaveField("UID", Not(Equal(was))), HaveField("Status.ReadyReplicas", BeEquivalentTo(1))))
	})
})

// logs are what a pod of the super cluster has written.
func logs(ns, name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c, err := kubernetes.NewForConfig(super.Config)
		if err != nil {
			return "", err
		}
		stream, err := c.CoreV1().Pods(ns).GetLogs(name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		var text bytes.Buffer
		_, err = io.Copy(&text, stream)
		return text.String(), err
	}
}
