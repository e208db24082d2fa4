package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert"
	shared "github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("Ingresses of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, plain *kit.Converted
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	rule := func(host string) networkingv1.IngressRule {
		paths := []networkingv1.HTTPIngressPath{{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: backend}}
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}}}
	}
	ingress := func(name string, change ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
		i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		i.Spec = networkingv1.IngressSpec{IngressClassName: new("converted-web"), Rules: []networkingv1.IngressRule{rule("www.red.example.com")}}
		for _, f := range change {
			f(i)
		}
		return i
	}
	policy := func(hosts ...string) func(*convert.Handler) {
		return func(h *convert.Handler) {
			h.Annotations[names.Policy] = shared.PolicyText(tenancyv1alpha1.TenantPolicy{IngressHosts: hosts})
		}
	}

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		red = converter.Tenant(ctx, "team-0a1b2c-hosts", policy("*.red.example.com", "red.example.org"))
		plain = converter.Tenant(ctx, "team-9d8e7f-hosts")
		for _, t := range []*kit.Converted{red, plain} {
			kit.Create(ctx, t.Client, namespaceOf("default"))
		}
		offered := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "converted-web", Labels: map[string]string{names.Public: "true"}}}
		hidden := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "converted-inside"}}
		for _, class := range []*networkingv1.IngressClass{offered, hidden} {
			class.Spec.Controller = "example.com/ingress"
			kit.Create(ctx, super.Client, class)
			DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		}
	})

	It("have the hosts of the policy, and an offered class", func(ctx SpecContext) {
		web := ingress("web", func(i *networkingv1.Ingress) {
			i.Spec.Rules = append(i.Spec.Rules, rule("red.example.org"), rule("*.red.example.com"))
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.red.example.com"}, SecretName: "tls"}}
		})
		kit.Create(ctx, red.Client, web)
		kit.Edit(ctx, red.Client, web, func(i *networkingv1.Ingress) { i.Spec.Rules = i.Spec.Rules[:1] })
		apply := client.RawPatch("application/apply-patch+yaml", []byte(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"applied"},`+
			`"spec":{"ingressClassName":"converted-web","rules":[{"host":"b.red.example.com"}]}}`))
		Expect(red.Client.Patch(ctx, ingress("applied"), apply, client.FieldOwner("test"))).To(Succeed())
	})

	for name, tc := range map[string]struct {
		change func(*networkingv1.Ingress)
		want   string
	}{
		"another host":             {func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "www.blue.example.com" }, "a host of the Ingress is not one of"},
		"the domain itself":        {func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "red.example.com" }, "a host of the Ingress is not one of"},
		"a host that ends like it": {func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "bored.example.com" }, "a host of the Ingress is not one of"},
		"no host":                  {func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "" }, "a host of the Ingress is not one of"},
		"a default backend":        {func(i *networkingv1.Ingress) { i.Spec.DefaultBackend = &backend }, "names a host in each rule"},
		"a certificate for all":    {func(i *networkingv1.Ingress) { i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "tls"}} }, "names a host in each rule"},
		"another's certificate": {func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"www.blue.example.com"}}}
		}, "a host of spec.tls is not one of"},
		"a hidden class":  {func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("converted-inside") }, "the platform does not offer the class"},
		"a missing class": {func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("missing") }, "the platform does not offer the class"},
		"no class":        {func(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil }, "the platform does not offer the class"},
		"an annotation": {func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{"nginx.ingress.kubernetes.io/configuration-snippet": "return 200;"}
		}, "an Ingress has no annotations"},
	} {
		It("are rejected with "+name, func(ctx SpecContext) {
			Expect(red.Client.Create(ctx, ingress("bad", tc.change))).To(MatchError(ContainSubstring(tc.want)))
		})
	}

	It("do not change to others", func(ctx SpecContext) {
		web := ingress("changed")
		kit.Create(ctx, red.Client, web)
		change := func(ctx context.Context, patch string) error {
			return red.Client.Patch(ctx, web.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		}
		Expect(change(ctx, `{"spec":{"rules":[{"host":"www.blue.example.com"}]}}`)).To(MatchError(ContainSubstring("a host of the Ingress is not one of")))
		Expect(change(ctx, `{"spec":{"ingressClassName":"converted-inside"}}`)).To(MatchError(ContainSubstring("which does not change")))
		Expect(change(ctx, `{"spec":{"ingressClassName":null}}`)).To(MatchError(ContainSubstring("which does not change")))
		Expect(red.Client.Status().Patch(ctx, web.DeepCopy(), client.RawPatch("application/merge-patch+json",
			[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)))).To(MatchError(ContainSubstring("the status of an Ingress")))
	})

	It("do not exist without hosts in the policy", func(ctx SpecContext) {
		Expect(plain.Client.Create(ctx, ingress("web"))).To(MatchError(ContainSubstring("a host of the Ingress is not one of spec.policy.ingressHosts")))
	})
})
