package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

func TestNamespaceGoesDown(t *testing.T) {
	k := kindOf[engine.Down[*corev1.Namespace]](t, Namespace())
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", UID: "tenant-uid",
		Labels:      map[string]string{"pod-security.kubernetes.io/enforce": "privileged", "env": "prod"},
		Annotations: map[string]string{names.VCUID: "forged"},
		Finalizers:  []string{"example.com/hold"},
	}}
	want := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: superDefault,
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce":                         "baseline",
			"labels.tenancy.x-k8s.io/env":                                "prod",
			"labels.tenancy.x-k8s.io/pod-security.kubernetes.io_enforce": "privileged",
			"tenancy.x-k8s.io/vcname":                                    "blue", "tenancy.x-k8s.io/vcnamespace": "team",
		},
		Annotations: map[string]string{
			"tenancy.x-k8s.io/cluster":     "team-71a1c3-blue",
			"tenancy.x-k8s.io/uid":         "tenant-uid",
			"tenancy.x-k8s.io/namespace":   "default",
			"tenancy.x-k8s.io/vcname":      "blue",
			"tenancy.x-k8s.io/vcnamespace": "team",
			"tenancy.x-k8s.io/vcuid":       "vc-uid",
			"tenancy.x-k8s.io/labels":      "labels.tenancy.x-k8s.io/env,labels.tenancy.x-k8s.io/pod-security.kubernetes.io_enforce",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Namespace", Name: "team-71a1c3-blue", UID: "root-uid",
		}},
	}}
	if diff := cmp.Diff(want, down(t, k, tenant)); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

// TestPodSecurityOfANamespace: the policy says the level, also of a copy that exists.
func TestPodSecurityOfANamespace(t *testing.T) {
	k := kindOf[engine.Down[*corev1.Namespace]](t, Namespace())
	for level, want := range map[tenancyv1alpha1.PodSecurityLevel]string{
		"": "baseline", tenancyv1alpha1.PodSecurityRestricted: "restricted", tenancyv1alpha1.PodSecurityPrivileged: "privileged",
	} {
		copied, err := k.Desired(under(tenancyv1alpha1.TenantPolicy{PodSecurity: level}), &corev1.Namespace{})
		if err != nil {
			t.Fatal(err)
		}
		if got := copied.Labels["pod-security.kubernetes.io/enforce"]; got != want {
			t.Errorf("under level %q the copy enforces %q, want %q", level, got, want)
		}
		for key := range copied.Labels {
			if strings.HasSuffix(key, "-version") {
				t.Errorf("the copy pins %s; the nodes' own version is what counts", key)
			}
		}
	}
}

func TestNamespaceKeys(t *testing.T) {
	k := kindOf[engine.Down[*corev1.Namespace]](t, Namespace())
	for _, name := range []string{"default", "kube-system", strings.Repeat("long-", 12) + "end"} {
		tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		super := down(t, k, tenant)
		if got, want := client.ObjectKeyFromObject(super), (client.ObjectKey{Name: names.SuperNamespace(blue.Key, name)}); got != want {
			t.Errorf("%s goes down as %s, want %s", name, got, want)
		}
		if got, want := k.TenantKey(super), (client.ObjectKey{Name: name}); got != want {
			t.Errorf("the copy of %s leads back to %s", name, got)
		}
	}
}

// TestNamespaceMerge: a copy that was taken away from its root namespace is given back; the rest is the super cluster's.
func TestNamespaceMerge(t *testing.T) {
	k := kindOf[engine.Down[*corev1.Namespace]](t, Namespace())
	desired, err := k.Desired(view, &corev1.Namespace{})
	if err != nil {
		t.Fatal(err)
	}
	super := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: superDefault, Labels: map[string]string{"its": "own"}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
	}
	want := super.DeepCopy()
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Namespace", Name: "team-71a1c3-blue", UID: "root-uid",
	}}
	k.Merge(super, desired)
	if diff := cmp.Diff(want, super); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}
