package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ingress returns an ingress with a class, unless it is empty.
func ingress(class string, change ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: meta("web")}
	if class != "" {
		i.Spec.IngressClassName = new(class)
	}
	for _, f := range change {
		f(i)
	}
	return i
}

// annotated sets the class by annotation.
func annotated(class string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) { i.Annotations = map[string]string{"kubernetes.io/ingress.class": class} }
}

func TestIngressGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.Ingress]](t, Ingress())
	tenant := ingress("public", func(i *networkingv1.Ingress) {
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{
			Resource: &corev1.TypedLocalObjectReference{APIGroup: new("example.com"), Kind: "Bucket", Name: "pictures"},
		}
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"example.com"}, SecretName: "cert"}, {SecretName: "other"}, {}}
		i.Spec.Rules = []networkingv1.IngressRule{{Host: "example.com"}}
		i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	})
	got, err := k.Desired(under(tenancyv1alpha1.TenantPolicy{IngressHosts: []string{"*"}}), tenant)
	want := &networkingv1.Ingress{Spec: tenant.Spec}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
	refs := []kinds.Reference{
		{Kind: "Secret", Name: "cert"}, {Kind: "Secret", Name: "other"}, {Kind: "Bucket.example.com", Name: "pictures"},
	}
	if diff := cmp.Diff(refs, k.References(tenant)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestIngressClassIsOffered(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.Ingress]](t, Ingress())
	tests := map[string]struct {
		tenant  *networkingv1.Ingress
		refused string
	}{
		"an offered class":                         {ingress("public"), ""},
		"a class that is not offered":              {ingress("internal"), "spec.ingressClassName"},
		"none":                                     {ingress(""), `spec.ingressClassName is "", which names no class`},
		"in the old way, one that is offered":      {ingress("", annotated("public")), ""},
		"in the old way, one that is not":          {ingress("", annotated("internal")), "kubernetes.io/ingress.class"},
		"in the old way, beside the other":         {ingress("public", annotated("internal")), "kubernetes.io/ingress.class"},
		"in the old way, none":                     {ingress("", annotated("")), `kubernetes.io/ingress.class is "", which names no class`},
		"in the old way, none, beside the other":   {ingress("public", annotated("")), `kubernetes.io/ingress.class is "", which names no class`},
		"a class of another kind of the same name": {ingress("fast"), "spec.ingressClassName"},
	}
	v := offering("IngressClass", "public")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			switch _, err := k.Desired(v, tt.tenant); {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("the error is %v, which does not name %s", err, tt.refused)
			}
		})
	}
}

func TestIngressMerge(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.Ingress]](t, Ingress())
	super := ingress("stolen", func(i *networkingv1.Ingress) {
		i.Spec.Rules = []networkingv1.IngressRule{{Host: "old.example.com"}}
		i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "stolen"}}
	})
	desired := ingress("public", func(i *networkingv1.Ingress) { i.Spec.Rules = []networkingv1.IngressRule{{Host: "example.com"}} })
	k.Merge(super, desired)
	if diff := cmp.Diff(desired.Spec, super.Spec); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestIngressStatusComesUp(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.Ingress]](t, Ingress())
	tenant, super := ingress("public"), ingress("public")
	super.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "lb.example.com"}}
	was := tenant.DeepCopy()
	k.Status(view, tenant, super)
	if diff := cmp.Diff(super.Status, tenant.Status); diff != "" || k.Same(was, tenant) {
		t.Errorf("same as before: %t; status (-want +got):\n%s", k.Same(was, tenant), diff)
	}
	was.Status = super.Status
	unchanged(t, "more than the status", was, tenant)
}
