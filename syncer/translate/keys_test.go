package translate

import (
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// TestLabelKey checks which labels copies of a kind have by default, and their
// keys.
func TestLabelKey(t *testing.T) {
	const same, none = "=", ""
	tests := map[string]struct{ kind, key, want string }{
		"a pod's plain label":                {"Pod", "app", same},
		"a pod's name":                       {"Pod", "app.kubernetes.io/name", same},
		"a pod's revision":                   {"Pod", "pod-template-hash", same},
		"a pod's number":                     {"Pod", "apps.kubernetes.io/pod-index", same},
		"a pod's job":                        {"Pod", "batch.kubernetes.io/job-name", same},
		"a pod's stateful set":               {"Pod", "statefulset.kubernetes.io/pod-name", same},
		"a pod's zone":                       {"Pod", "topology.kubernetes.io/zone", same},
		"a pod's label with a domain":        {"Pod", "example.com/tier", "labels.tenancy.x-k8s.io/example.com_tier"},
		"a pod's label of a runtime":         {"Pod", "io.kubernetes.pod.namespace", "labels.tenancy.x-k8s.io/io.kubernetes.pod.namespace"},
		"a pod's cloud identity":             {"Pod", "aadpodidbinding", "labels.tenancy.x-k8s.io/aadpodidbinding"},
		"a pod's label with our domain":      {"Pod", "tenancy.x-k8s.io/vcname", "labels.tenancy.x-k8s.io/tenancy.x-k8s.io_vcname"},
		"a pod's label that the syncer sets": {"Pod", "labels.tenancy.x-k8s.io/a", "labels.tenancy.x-k8s.io/labels.tenancy.x-k8s.io_a"},
		"a pod's name of a namespace":        {"Pod", "kubernetes.io/metadata.name", "labels.tenancy.x-k8s.io/kubernetes.io_metadata.name"},
		"a namespace's name":                 {"Namespace", "kubernetes.io/metadata.name", same},
		"a namespace's plain label":          {"Namespace", "istio-injection", "labels.tenancy.x-k8s.io/istio-injection"},
		"a namespace's level":                {"Namespace", "pod-security.kubernetes.io/enforce", "labels.tenancy.x-k8s.io/pod-security.kubernetes.io_enforce"},
		"a namespace's name of an app":       {"Namespace", "app.kubernetes.io/name", "labels.tenancy.x-k8s.io/app.kubernetes.io_name"},
		"a service's plain label":            {"Service", "app", same},
		"a service's name of an app":         {"Service", "app.kubernetes.io/name", same},
		"a service's label with a domain":    {"Service", "service.kubernetes.io/service-proxy-name", none},
		"a slice's service":                  {"EndpointSlice", "kubernetes.io/service-name", same},
		"a slice's manager":                  {"EndpointSlice", "endpointslice.kubernetes.io/managed-by", same},
		"a slice's plain label":              {"EndpointSlice", "app", none},
		"endpoints without slices":           {"Endpoints", "endpointslice.kubernetes.io/skip-mirror", same},
		"a config map's label":               {"ConfigMap", "grafana_dashboard", none},
		"a secret's label":                   {"Secret", "argocd.argoproj.io/secret-type", none},
		"an ingress's label":                 {"Ingress", "app", none},
		"a custom resource's label":          {"Widget.example.com", "app", none},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == same {
				want = tt.key
			}
			if got := blue.LabelKey(tt.kind, tt.key); got != want {
				t.Errorf("label %s of a %s is %q in the super cluster, want %q", tt.key, tt.kind, got, want)
			}
		})
	}
}

// TestLabelsOfTheSuperClusters checks that labels which each apiserver sets
// itself are not synced down.
func TestLabelsOfTheSuperClusters(t *testing.T) {
	tenant := blue
	tenant.Transparent = []string{"clear/"}
	got := tenant.Labels("Pod", pairs{"topology.kubernetes.io/zone": "mine", "clear/a": "mine"})
	if len(got) > 0 {
		t.Errorf("a pod's labels %v are synced down", got)
	}
	if got := tenant.Labels("Namespace", pairs{"kubernetes.io/metadata.name": "shop"}); len(got) > 0 {
		t.Errorf("a namespace's labels %v are synced down", got)
	}
}

func TestAnnotationStays(t *testing.T) {
	tenant := blue
	tenant.Opaque, tenant.Transparent = []string{"opaque/"}, []string{"clear/"}
	tenant.Sync.Metadata = []tenancyv1alpha1.MetadataSync{{Kinds: []string{"Service"}, Annotations: []string{"opaque/", "open/", "clear/"}}}
	tests := map[string]struct {
		kind, key string
		want      bool
	}{
		"of a pod":                        {"Pod", "note", true},
		"of a pod, for a runtime":         {"Pod", "io.katacontainers.config.hypervisor.path", true},
		"of a pod, for devices":           {"Pod", "cdi.k8s.io/gpu", true},
		"of a pod, another kind's":        {"Pod", "open/a", true},
		"of an account":                   {"ServiceAccount", "eks.amazonaws.com/role-arn", true},
		"of an ingress, for a controller": {"Ingress", "nginx.ingress.kubernetes.io/configuration-snippet", true},
		"of an ingress, its class":        {"Ingress", "kubernetes.io/ingress.class", false},
		"of a service, for a cloud":       {"Service", "service.beta.kubernetes.io/aws-load-balancer-internal", true},
		"of a service, its topology":      {"Service", "service.kubernetes.io/topology-mode", false},
		"that is allowed":                 {"Service", "open/a", false},
		"that is allowed and opaque":      {"Service", "opaque/a", true},
		"that is synced up":               {"Pod", "clear/a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tenant.AnnotationStays(tt.kind, tt.key); got != tt.want {
				t.Errorf("annotation %s of a %s stays: %t, want %t", tt.key, tt.kind, got, tt.want)
			}
			down := tenant.annotations(tt.kind, pairs{tt.key: "tenant's"})
			if _, goes := down[tt.key]; goes && tt.want {
				t.Errorf("annotation %s of a %s is synced down", tt.key, tt.kind)
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"example.com/a", "example.com/a", true},
		{"example.com/a", "example.com/ab", false},
		{"example.com/", "example.com/ab", true},
		{"example.com/", "sub.example.com/ab", false},
		{"example.com/", "example.com", false},
		{"example.com/a*", "example.com/ab", true},
		{"example.com/a*", "example.com/b", false},
		{"example.com*", "example.com.mallory.org/a", true},
		{"app", "app", true},
		{"app", "app2", false},
		{"", "", true},
		{"", "a", false},
	} {
		if got := matchesAny([]string{tt.pattern}, tt.key); got != tt.want {
			t.Errorf("%q matches %q: %t, want %t", tt.pattern, tt.key, got, tt.want)
		}
	}
}

// TestPolicyOfKeys checks that keys which the policy allows for a kind are
// synced down unchanged, for labels and annotations separately.
func TestPolicyOfKeys(t *testing.T) {
	tenant := blue
	tenant.Sync.Metadata = []tenancyv1alpha1.MetadataSync{
		{Kinds: []string{"Pod", "Widget.example.com"}, Labels: []string{"example.com/"}},
		{Kinds: []string{"Namespace"}, Labels: []string{"env"}, Annotations: []string{"example.com/"}},
	}
	for _, tt := range []struct{ kind, key, want string }{
		{"Pod", "example.com/tier", "example.com/tier"},
		{"Widget.example.com", "example.com/tier", "example.com/tier"},
		{"Namespace", "example.com/tier", "labels.tenancy.x-k8s.io/example.com_tier"},
		{"Namespace", "env", "env"},
		{"Service", "example.com/tier", ""},
	} {
		if got := tenant.LabelKey(tt.kind, tt.key); got != tt.want {
			t.Errorf("label %s of a %s is %q, want %q", tt.key, tt.kind, got, tt.want)
		}
	}
	if tenant.AnnotationStays("Namespace", "example.com/a") || !tenant.AnnotationStays("Pod", "example.com/a") {
		t.Error("the policy's annotations are not those of the kind")
	}
}
