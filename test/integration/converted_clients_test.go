package integration

import (
	"context"
	"net"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// clientIn returns the configuration of a client in a pod of a converted tenant, as
// rest.InClusterConfig makes it, and the namespace that it reads. Like a kubelet,
// it gets the token from the super cluster.
func clientIn(ctx context.Context, t *local.Tenant, pod *corev1.Pod) (_ *rest.Config, namespace string) {
	GinkgoHelper()
	inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.Super(pod.Namespace), Name: pod.Name}}
	Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
	environment := map[string]string{}
	for _, variable := range inSuper.Spec.Containers[0].Env {
		environment[variable.Name] = variable.Value
	}
	config := &rest.Config{
		Host: "https://" + net.JoinHostPort(environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]), QPS: -1,
	}
	Expect(inSuper.Spec.Volumes).To(HaveLen(1))
	for _, source := range inSuper.Spec.Volumes[0].Projected.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				Audiences:      []string{source.ServiceAccountToken.Audience},
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: inSuper.Name, UID: inSuper.UID},
			}}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: inSuper.Namespace, Name: inSuper.Spec.ServiceAccountName}}
			Expect(super.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
			config.BearerToken = request.Status.Token
		case source.ConfigMap != nil:
			authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inSuper.Namespace, Name: source.ConfigMap.Name}}
			Eventually(func() error { return kit.Get(ctx, super.Client, authorities) }).Should(Succeed())
			config.CAData = []byte(authorities.Data["ca.crt"])
		case source.DownwardAPI != nil:
			Expect(source.DownwardAPI.Items[0].FieldRef.FieldPath).To(Equal("metadata.annotations['tenancy.x-k8s.io/namespace']"))
			namespace = inSuper.Annotations["tenancy.x-k8s.io/namespace"]
		}
	}
	return config, namespace
}

var _ = Describe("A client in a pod of a converted tenant", Ordered, ContinueOnFailure, func() {
	var (
		red, blue *local.Tenant
		pod       *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		red, blue = kit.Tenant(ctx, super, kit.VirtualCluster(converted)), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(func() error { return t.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
		}
		pod = kit.Pod("shop", "client", func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{
				{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: "1"},
				{Name: "WHERE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			}
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "example.com/first"}}
		})
		Eventually(func() error { return red.Client.Create(ctx, pod) }).Should(Succeed(), "a controller makes its service account")
	})

	It("talks to the gateway as its tenant's service account", func(ctx SpecContext) {
		config, namespace := clientIn(ctx, red, pod)
		Expect(namespace).To(Equal("shop"))
		Expect(config.CAData).To(Equal(red.Config.CAData))
		pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(namespace)
		_, err := pods.List(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(apierrors.IsForbidden, "it has no rights yet"))
		Expect(err).To(MatchError(ContainSubstring(`User "system:serviceaccount:shop:default" cannot list resource "pods"`)))
		kit.Create(ctx, red.Client, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "default"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		})
		Eventually(func() (*corev1.PodList, error) { return pods.List(ctx, metav1.ListOptions{}) }).Should(
			HaveField("Items", ConsistOf(HaveField("Name", pod.Name))))
	})

	It("has a token that no other cluster accepts", func(ctx SpecContext) {
		config, _ := clientIn(ctx, red, pod)
		door := kit.DoorOf(red.Config)
		ask := func(path string) int {
			GinkgoHelper()
			transport := must(rest.TransportFor(&rest.Config{BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}))
			return must(local.Ask(ctx, &http.Client{Transport: transport}, door.Address, path)).Code
		}
		Expect(ask("/tenants/"+red.Key()+"/api/v1/secrets")).To(Equal(http.StatusForbidden), "it is known, and has no such right")
		Expect(ask("/tenants/" + blue.Key() + "/api/v1/namespaces")).To(Equal(http.StatusForbidden))
		at := rest.AnonymousClientConfig(super.Config)
		at.BearerToken = config.BearerToken
		_, err := kubernetes.NewForConfigOrDie(at).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(apierrors.IsUnauthorized, "Unauthorized"))
	})

	It("is in a pod that its tenant sees in its own names, and can update", func(ctx SpecContext) {
		Expect(kit.Get(ctx, red.Client, pod)).To(Succeed())
		variables := pod.Spec.Containers[0].Env
		Expect(variables[0].Name).To(Equal("KUBERNETES_SERVICE_HOST"))
		Expect(variables).To(HaveLen(9), "its own wins")
		Expect(variables[8].ValueFrom.FieldRef.FieldPath).To(Equal("metadata.namespace"))
		Expect(pod.Spec.InitContainers[0].Env).To(HaveLen(8))
		Expect(pod.Annotations).To(BeEmpty())
		token := pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken
		Expect(token.Audience).To(Equal("https://kubernetes.default.svc.cluster.local"))
		kit.Edit(ctx, red.Client, pod, func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "a"} })
		inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: red.Super("shop"), Name: pod.Name}}
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Annotations).To(HaveKeyWithValue("tenancy.x-k8s.io/namespace", "shop"))
	})

	It("gets tokens for others by TokenRequest, and pods by projected volumes", func(ctx SpecContext) {
		accounts := kubernetes.NewForConfigOrDie(red.Config).CoreV1().ServiceAccounts("shop")
		audienceOf := func(audiences ...string) *authenticationv1.TokenReview {
			GinkgoHelper()
			made, err := accounts.CreateToken(ctx, "default",
				&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			if len(audiences) > 0 {
				Expect(made.Spec.Audiences).To(Equal(audiences))
			}
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token, Audiences: []string{
				"vault", "converted.tenancy.x-k8s.io/" + red.Key(), "converted.tenancy.x-k8s.io/" + red.Key() + "/vault",
			}}}
			Expect(super.Client.Create(ctx, review)).To(Succeed())
			return review
		}
		Expect(audienceOf().Status.Audiences).To(HaveExactElements("converted.tenancy.x-k8s.io/" + red.Key()))
		Expect(audienceOf("vault").Status.Audiences).To(HaveExactElements("converted.tenancy.x-k8s.io/" + red.Key() + "/vault"))
		d := deployment("shop", "vault", 1, func(p *corev1.Pod) {
			p.Spec.AutomountServiceAccountToken = new(false)
			p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t", Audience: "vault"}}},
			}}}}
		})
		kit.Create(ctx, red.Client, d)
		Expect(d.Spec.Template.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.Audience).To(Equal("vault"))
		Eventually(func() ([]corev1.Pod, error) {
			list := &corev1.PodList{}
			err := super.Client.List(ctx, list, client.InNamespace(red.Super("shop")), client.MatchingLabels(d.Spec.Selector.MatchLabels))
			return list.Items, err
		}).Should(ConsistOf(HaveField("Spec.Volumes", HaveExactElements(HaveField("Projected.Sources", HaveExactElements(
			HaveField("ServiceAccountToken.Audience", "converted.tenancy.x-k8s.io/"+red.Key()+"/vault")))))))
	})

	It("has tokens that the tenants review, each its own", func(ctx SpecContext) {
		made, err := kubernetes.NewForConfigOrDie(red.Config).CoreV1().ServiceAccounts("shop").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		review := func(t *local.Tenant, audiences ...string) authenticationv1.TokenReviewStatus {
			GinkgoHelper()
			asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token, Audiences: audiences}}
			Expect(t.Client.Create(ctx, asked)).To(Succeed())
			return asked.Status
		}
		own := review(red)
		Expect(own.Authenticated).To(BeTrue())
		Expect(own.User.Username).To(Equal("system:serviceaccount:shop:default"))
		Expect(own.User.Groups).To(ConsistOf("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"))
		Expect(own.User.Extra).To(HaveKey("authentication.kubernetes.io/credential-id"))
		Expect(own.Audiences).To(Equal([]string{"https://kubernetes.default.svc.cluster.local"}))
		Expect(review(red, "vault").Authenticated).To(BeFalse())
		Expect(review(blue).Authenticated).To(BeFalse())
	})

	It("reads the CA of the gateway, whatever the tenant writes", func(ctx SpecContext) {
		authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kube-root-ca.crt"}}
		kit.Edit(ctx, red.Client, authorities, func(c *corev1.ConfigMap) { c.Data = map[string]string{"ca.crt": "mine"} })
		Expect(authorities.Data).To(Equal(map[string]string{"ca.crt": string(red.Config.CAData)}))
		Expect(red.Client.Delete(ctx, authorities)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, authorities)).Should(HaveField("Data", HaveKeyWithValue("ca.crt", string(red.Config.CAData))))
	})
})
