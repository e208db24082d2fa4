package patch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

var blue = translate.Tenant{Key: "team-71a1c3-blue", Name: "blue", Namespace: "team", UID: "7f2c"}

// certificates is the kind of the custom resource in these tests.
const certificates = "Certificate.cert-manager.io"

// copyMeta returns the metadata of a copy.
func copyMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: "team-71a1c3-blue-shop",
		UID:       "super-uid",
		Labels:    map[string]string{"app": "web", "tenancy.x-k8s.io/vcname": "blue", "pod-security.kubernetes.io/enforce": "baseline"},
		Annotations: map[string]string{
			"tenancy.x-k8s.io/cluster": "team-71a1c3-blue", "tenancy.x-k8s.io/uid": "tenant-uid", "note": "a",
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "root", UID: "root-uid"}},
	}
}

// tenantMeta returns the metadata of the tenant's object.
func tenantMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: "tenant-uid",
		Labels: map[string]string{"app": "web", "tier": "gold"},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "web", Image: "web:1",
			Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			},
		}},
		ServiceAccountName: "default",
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: copyMeta("web-0"), Spec: podSpec()}
}

func tenantPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: tenantMeta("web-0"), Spec: podSpec()}
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: copyMeta("data"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
			StorageClassName: new("fast"),
		},
	}
}

func namespace() *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: copyMeta("team-71a1c3-blue-shop")}
	ns.Namespace = ""
	return ns
}

func certificate() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1",
		"kind":       "Certificate",
		"metadata": map[string]any{
			"name": "web", "namespace": "team-71a1c3-blue-shop", "uid": "super-uid",
			"labels":      map[string]any{"tenancy.x-k8s.io/vcname": "blue"},
			"annotations": map[string]any{"tenancy.x-k8s.io/cluster": "team-71a1c3-blue"},
			"ofTheFuture": "kept",
		},
		"spec": map[string]any{
			"secretName": "web", "replicas": int64(3), "share": 0.5,
			"issuerRef": map[string]any{"name": "letsencrypt"},
			"dnsNames":  []any{"a.example", "b.example"},
		},
	}}
}

// objects returns a copy of each kind in these tests.
func objects() map[string]client.Object {
	return map[string]client.Object{
		"Pod": pod(), "PersistentVolumeClaim": claim(), "Namespace": namespace(), certificates: certificate(),
	}
}

// fields returns a patch for all kinds, from pairs of a path and an expression.
func fields(pairs ...string) tenancyv1alpha1.SyncPatch {
	p := tenancyv1alpha1.SyncPatch{Name: "test", Kinds: []string{"Pod", "PersistentVolumeClaim", "Namespace", certificates}}
	for i := 0; i < len(pairs); i += 2 {
		p.Set = append(p.Set, tenancyv1alpha1.FieldExpression{Path: pairs[i], Expression: pairs[i+1]})
	}
	return p
}

// when returns a patch with a condition.
func when(condition string, p tenancyv1alpha1.SyncPatch) tenancyv1alpha1.SyncPatch {
	p.When = condition
	return p
}

// operations returns a patch for all kinds by a JSON Patch.
func operations(text string) tenancyv1alpha1.SyncPatch {
	p := fields()
	p.JSONPatch = text
	return p
}

func set(patches ...tenancyv1alpha1.SyncPatch) *Set { return Compile(patches) }

// tryPod returns a patched copy of a pod.
func tryPod(t *testing.T, patches ...tenancyv1alpha1.SyncPatch) (*corev1.Pod, error) {
	t.Helper()
	object := pod()
	err := set(patches...).Apply(t.Context(), "Pod", object, tenantPod(), blue)
	return object, err
}

// tryCertificate returns a patched copy of a custom resource.
func tryCertificate(t *testing.T, patches ...tenancyv1alpha1.SyncPatch) (*unstructured.Unstructured, error) {
	t.Helper()
	object := certificate()
	err := set(patches...).Apply(t.Context(), certificates, object, certificate(), blue)
	return object, err
}
