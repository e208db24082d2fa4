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
	"github.com/virtualcluster/virtualcluster/internal/podsecurity"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

func TestNamespaceGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Namespace]](t, Namespace())
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

// TestPodSecurityOfANamespace checks that the policy sets the level, also of an
// existing copy.
func TestPodSecurityOfANamespace(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Namespace]](t, Namespace())
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

// TestServicePartOfANamespace checks that a namespace has the tenant's range
// from the VirtualCluster, and not from the tenant's object.
func TestServicePartOfANamespace(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Namespace]](t, Namespace())
	with := func(part string) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{podsecurity.Enforce: "baseline"}}}
		if part != "" {
			ns.Annotations = map[string]string{names.ServiceCIDR: part}
		}
		return ns
	}
	for name, tt := range map[string]struct {
		view    kinds.View
		super   *corev1.Namespace
		want    string
		current bool
	}{
		"it has the part":              {addressed(), with("10.104.16.0/20"), "10.104.16.0/20", true},
		"it has none yet":              {addressed(), with(""), "10.104.16.0/20", false},
		"it has another":               {addressed(), with("10.104.0.0/13"), "10.104.16.0/20", false},
		"it has none, as it should":    {view, with(""), "", true},
		"it has one and should not":    {view, with("10.104.16.0/20"), "", false},
		"it has another level as well": {addressed(), &corev1.Namespace{}, "10.104.16.0/20", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := k.Current(tt.view.Tenant, tt.super); got != tt.current {
				t.Errorf("current: %t, want %t", got, tt.current)
			}
			tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "default", Annotations: map[string]string{names.ServiceCIDR: "10.96.0.0/12"},
			}}
			desired := downIn(t, tt.view, k, tenant)
			k.Merge(tt.super, desired)
			translate.Merge(tt.super, desired.ObjectMeta)
			if got := tt.super.Annotations[names.ServiceCIDR]; got != tt.want {
				t.Errorf("the copy has the part %q, want %q", got, tt.want)
			}
			if !k.Current(tt.view.Tenant, tt.super) {
				t.Error("a copy that was updated is not current")
			}
		})
	}
}

func TestNamespaceKeys(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Namespace]](t, Namespace())
	for _, name := range []string{"default", "kube-system", strings.Repeat("long-", 12) + "end"} {
		tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		super := down(t, k, tenant)
		if got, want := client.ObjectKeyFromObject(super), (client.ObjectKey{Name: names.SuperNamespace(blue.Key, name)}); got != want {
			t.Errorf("%s is synced down as %s, want %s", name, got, want)
		}
		if got, want := k.TenantKey(super), (client.ObjectKey{Name: name}); got != want {
			t.Errorf("the copy of %s leads back to %s", name, got)
		}
	}
}

// TestNamespaceMerge checks that the owner reference to the root namespace is
// restored; the rest belongs to the super cluster.
func TestNamespaceMerge(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Namespace]](t, Namespace())
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
