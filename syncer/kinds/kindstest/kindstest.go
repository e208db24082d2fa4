// Package kindstest provides kinds and objects for the tests of the packages
// that sync objects of any kind.
package kindstest

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Plain returns a kind with only the required fields.
func Plain() kinds.Down[*corev1.Pod] {
	return kinds.Down[*corev1.Pod]{
		Name:   "Pod",
		Object: &corev1.Pod{},
		List:   &corev1.PodList{},
		Desired: func(v kinds.View, tenant *corev1.Pod) (*corev1.Pod, error) {
			return &corev1.Pod{Spec: corev1.PodSpec{Hostname: tenant.Name + " of " + v.Tenant.Name}}, nil
		},
		Merge: func(super, desired *corev1.Pod) { super.Spec.Hostname = desired.Spec.Hostname },
	}
}

// Rich returns a kind with nearly all fields.
func Rich() kinds.Down[*corev1.Pod] {
	k := Plain()
	k.OnDemand = true
	k.Adopt = func(super *corev1.Pod) bool { return super.Name == "made" }
	k.SuperKey = func(t translate.Tenant, key client.ObjectKey) client.ObjectKey {
		return client.ObjectKey{Namespace: t.Name, Name: "super-" + key.Name}
	}
	k.TenantKey = func(super client.Object) client.ObjectKey { return client.ObjectKey{Name: "tenant-" + super.GetName()} }
	k.Admit = func(v kinds.View, tenant *corev1.Pod) error {
		if tenant.Name == "unwanted" {
			return errors.New("not for " + v.Tenant.Name)
		}
		return nil
	}
	k.Replace = func(super, desired *corev1.Pod) bool { return super.Name == "old" && desired.Name == "new" }
	k.Skip = func(_ kinds.View, tenant *corev1.Pod) bool { return tenant.Name == "skipped" }
	k.References = func(tenant *corev1.Pod) []kinds.Reference {
		return []kinds.Reference{{Kind: "Secret", Name: tenant.Name}}
	}
	k.Status = func(v kinds.View, tenant, super *corev1.Pod) {
		tenant.Status.Message = super.Status.Message + " for " + v.Tenant.Name
	}
	k.Same = func(a, b *corev1.Pod) bool { return a.Status.Message == b.Status.Message }
	k.Mirror = &kinds.Mirror[*corev1.Pod]{
		Started: func(tenant *corev1.Pod) bool { return tenant.Name == "started" },
		Node:    func(pod *corev1.Pod) string { return pod.Spec.NodeName },
		Ended:   func(super *corev1.Pod) bool { return super.Status.Phase == corev1.PodSucceeded },
		Bound: func(pod *corev1.Pod, node string) *corev1.Pod {
			pod = pod.DeepCopy()
			pod.Spec.NodeName = node
			return pod
		},
		GracePeriodSeconds: func(pod *corev1.Pod) *int64 { return pod.DeletionGracePeriodSeconds },
	}
	return k
}

// Named returns a pod with this name.
func Named(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Blue returns a tenant.
func Blue() translate.Tenant {
	return translate.Tenant{Key: "team-71a1c3-blue", Name: "blue", Sync: tenancyv1alpha1.SyncSpec{
		Metadata: []tenancyv1alpha1.MetadataSync{{Kinds: []string{"ConfigMap"}, Labels: []string{"app"}}},
	}}
}

// Needed returns a kind of which caches only hold metadata.
func Needed() kinds.Down[*corev1.ConfigMap] {
	return kinds.Down[*corev1.ConfigMap]{
		Name: "ConfigMap", Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{}, OnDemand: true,
		Desired: func(_ kinds.View, tenant *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{Data: tenant.DeepCopy().Data}, nil
		},
		Merge: func(super, desired *corev1.ConfigMap) { super.Data = desired.Data },
	}
}

// Typed returns a kind for the engine.
func Typed(of kinds.Flow) *kinds.Kind {
	k := of.Erase()
	k.GVK, _ = apiutil.GVKForObject(k.Object, clientgoscheme.Scheme)
	return k
}

// Objects returns pods as objects.
func Objects(pods []*corev1.Pod) []client.Object {
	objects := make([]client.Object, len(pods))
	for i, pod := range pods {
		objects[i] = pod
	}
	return objects
}

// PodIn returns a pod with this namespace and name.
func PodIn(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// WebKey returns the key of a pod.
func WebKey() client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: "web"} }

// Version returns the pod of [WebKey] in a version.
func Version(resourceVersion string) *corev1.Pod {
	pod := PodIn(WebKey().Namespace, WebKey().Name)
	pod.ResourceVersion = resourceVersion
	return pod
}

// SettingsKey returns the key of a ConfigMap.
func SettingsKey() client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: "settings"} }

// Settings returns the ConfigMap of [SettingsKey], which a tenant has.
func Settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: SettingsKey().Namespace, Name: SettingsKey().Name, UID: "tenant-uid", Labels: map[string]string{"app": "web"},
		},
		Data: map[string]string{"color": "blue"},
	}
}

// CopyOf returns the copy of a ConfigMap of [Blue], with changes.
func CopyOf(tenant *corev1.ConfigMap, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	copied := &corev1.ConfigMap{
		ObjectMeta: Blue().Down("ConfigMap", tenant, Blue().SuperKey(SettingsKey())), Data: tenant.DeepCopy().Data,
	}
	copied.UID = "super-uid"
	for _, f := range change {
		f(copied)
	}
	return copied
}
