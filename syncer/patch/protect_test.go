package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// identityOf returns the metadata that no patch may change.
func identityOf(object client.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: object.GetName(), GenerateName: object.GetGenerateName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(),
		OwnerReferences: object.GetOwnerReferences(), ManagedFields: object.GetManagedFields(),
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
	for key, value := range object.GetLabels() {
		if isGuarded(key) {
			meta.Labels[key] = value
		}
	}
	for key, value := range object.GetAnnotations() {
		if isGuarded(key) {
			meta.Annotations[key] = value
		}
	}
	return meta
}

// TestIdentityStays checks that patches of protected fields are applied except
// to these fields.
func TestIdentityStays(t *testing.T) {
	for name, patch := range map[string]tenancyv1alpha1.SyncPatch{
		"OneByOne": fields(
			"/apiVersion", "'other/v1'", "/kind", "'Other'",
			"/metadata/name", "'other'", "/metadata/namespace", "'kube-system'", "/metadata/uid", "'other'",
			"/metadata/generateName", "'other'", "/metadata/resourceVersion", "'7'",
			"/metadata/creationTimestamp", "timestamp('2026-01-02T03:04:05Z')", "/metadata/deletionTimestamp", "timestamp('2026-01-02T03:04:05Z')",
			"/metadata/ownerReferences/-", "{'apiVersion': 'v1', 'kind': 'Node', 'name': 'n', 'uid': 'u'}",
			"/metadata/managedFields", "[{'manager': 'me'}]",
			"/metadata/labels/tenancy.x-k8s.io~1vcname", "'red'", "/metadata/labels/tenancy.x-k8s.io~1new", "'red'",
			"/metadata/labels/pod-security.kubernetes.io~1enforce", "'privileged'",
			"/metadata/labels/pod-security.kubernetes.io~1warn", "'privileged'",
			"/metadata/annotations/tenancy.x-k8s.io~1cluster", "'red'", "/metadata/annotations/tenancy.x-k8s.io~1new", "'red'",
			"/metadata/labels/done", "'yes'",
		),
		"Removed": fields(
			"/metadata/name", "null", "/metadata/ownerReferences/0", "null", "/metadata/uid", "null", "/kind", "null", "/apiVersion", "null",
			"/metadata/labels/tenancy.x-k8s.io~1vcname", "null", "/metadata/annotations/tenancy.x-k8s.io~1uid", "null",
			"/metadata/labels/done", "'yes'",
		),
		"AllLabels":       fields("/metadata/annotations", "null", "/metadata/labels", "{'done': 'yes'}"),
		"AllMetadata":     fields("/metadata", "{'labels': {'done': 'yes'}, 'name': 'other'}"),
		"MetadataRemoved": fields("/metadata", "null", "/metadata/labels/done", "'yes'"),
		"Deep":            fields("/metadata/ownerReferences/0/name", "'other'", "/metadata/labels/done", "'yes'"),
		"WrongTypes":      fields("/metadata/name", "5", "/metadata/ownerReferences", "'none'", "/kind", "[1]", "/metadata/labels/done", "'yes'"),
		"JSONPatch": operations(`[
			{"op": "replace", "path": "/metadata/name", "value": "other"},
			{"op": "remove", "path": "/metadata/labels/tenancy.x-k8s.io~1vcname"},
			{"op": "add", "path": "/metadata/ownerReferences", "value": []},
			{"op": "add", "path": "/metadata/labels/done", "value": "yes"}
		]`),
	} {
		for kind, object := range objects() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				if kind == certificates {
					object.SetOwnerReferences(pod().OwnerReferences)
				}
				before := object.DeepCopyObject().(client.Object)
				if err := set(patch).Apply(t.Context(), kind, object, tenantPod(), blue); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(identityOf(before), identityOf(object)); diff != "" {
					t.Error(diff)
				}
				if was, is := before.GetObjectKind().GroupVersionKind(), object.GetObjectKind().GroupVersionKind(); was != is {
					t.Errorf("was %v, is %v", was, is)
				}
				if object.GetLabels()["done"] != "yes" {
					t.Error("the patch was not applied")
				}
			})
		}
	}
}

// TestOtherMetadataCanBeWritten checks that patches can write labels,
// annotations and finalizers.
func TestOtherMetadataCanBeWritten(t *testing.T) {
	for kind, object := range objects() {
		t.Run(kind, func(t *testing.T) {
			patches := set(fields("/metadata/labels/a", "'1'", "/metadata/annotations/b", "'2'", "/metadata/finalizers/-", "'example.com/c'"))
			if err := patches.Apply(t.Context(), kind, object, tenantPod(), blue); err != nil {
				t.Fatal(err)
			}
			if object.GetLabels()["a"] != "1" || object.GetAnnotations()["b"] != "2" ||
				!cmp.Equal(object.GetFinalizers(), []string{"example.com/c"}) {
				t.Errorf("got %v, %v, %v", object.GetLabels(), object.GetAnnotations(), object.GetFinalizers())
			}
		})
	}
}
