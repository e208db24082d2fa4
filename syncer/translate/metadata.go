package translate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Down returns the metadata of the copy of a tenant's object of a kind, with
// the copy's key.
func (t Tenant) Down(kind string, obj metav1.Object, superKey types.NamespacedName) metav1.ObjectMeta {
	labels := t.Labels(kind, obj.GetLabels())
	annotations := t.annotations(kind, obj.GetAnnotations())
	meta := metav1.ObjectMeta{
		Name:        superKey.Name,
		Namespace:   superKey.Namespace,
		Labels:      maps.Clone(labels),
		Annotations: maps.Clone(annotations),
	}
	t.stamp(&meta, obj)
	setKeys(meta.Annotations, names.Labels, labels)
	setKeys(meta.Annotations, names.Annotations, annotations)
	return meta
}

// stamp adds the tenant and the tenant's object to the metadata of a copy.
func (t Tenant) stamp(meta *metav1.ObjectMeta, obj metav1.Object) {
	maps.Copy(meta.Labels, t.Project())
	maps.Copy(meta.Annotations, t.Stamp(obj))
	if owners := obj.GetOwnerReferences(); len(owners) > 0 {
		data, _ := json.Marshal(owners) //nolint:errchkjson // strings and booleans cannot fail
		meta.Annotations[names.OwnerReferences] = string(data)
	}
}

// Project returns the labels of all objects of the tenant in the super cluster.
func (t Tenant) Project() map[string]string {
	return map[string]string{names.VCName: t.Name, names.VCNamespace: t.Namespace}
}

// Stamp returns the annotations that identify the tenant of an object of the
// super cluster, and the tenant's object.
func (t Tenant) Stamp(obj metav1.Object) map[string]string {
	return map[string]string{
		names.VCName:      t.Name,
		names.VCNamespace: t.Namespace,
		names.Cluster:     t.Key,
		names.UID:         string(obj.GetUID()),
		names.Namespace:   cmp.Or(obj.GetNamespace(), obj.GetName()),
	}
}

// Template returns the metadata of a template in the copy of a tenant's object
// of a kind. Objects that the super cluster creates from it have the tenant's
// labels. They are not copies, so they do not have the annotations of one.
func (t Tenant) Template(kind string, template metav1.ObjectMeta) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Labels:      t.Labels(kind, template.Labels),
		Annotations: t.annotations(kind, template.Annotations),
	}
	maps.Copy(meta.Labels, t.Project())
	return meta
}

// Labels returns the labels of the copy that come from the tenant's object;
// never nil.
func (t Tenant) Labels(kind string, of map[string]string) map[string]string {
	out := make(map[string]string, len(of)+7)
	for key, value := range of {
		if superKey := t.LabelKey(kind, key); superKey != "" && !t.isSupers(kind, key) {
			out[superKey] = value
		}
	}
	return out
}

// LabelKey returns the key that a label of a tenant's object has in the super
// cluster; empty if the label stays in the tenant. A label that selectors need
// and that is not allowed has a key of VirtualCluster's domain there, which no
// other controller interprets.
func (t Tenant) LabelKey(kind, key string) string {
	switch {
	case hasPrefix(key, t.Opaque):
		return ""
	case t.isSupers(kind, key), t.allowsLabel(kind, key):
		return key
	case kind == podKind, kind == namespaceKind:
		return names.Label(key)
	}
	return ""
}

// isSupers reports whether the super cluster decides the value of a label, so
// that the tenant's is not synced down.
func (t Tenant) isSupers(kind, key string) bool {
	return hasPrefix(key, t.Transparent) || slices.Contains(supers[kind], key)
}

// annotations returns the annotations of the copy that come from the tenant's
// object; never nil.
func (t Tenant) annotations(kind string, of map[string]string) map[string]string {
	out := make(map[string]string, 7)
	for key, value := range of {
		if t.allowsAnnotation(kind, key) && !hasPrefix(key, t.Transparent) {
			out[key] = value
		}
	}
	return out
}

// AnnotationStays reports whether an annotation stays in the tenant, so that
// the copy has none, or one of the super cluster.
func (t Tenant) AnnotationStays(kind, key string) bool {
	return hasPrefix(key, t.Opaque) || !hasPrefix(key, t.Transparent) && !t.allowsAnnotation(kind, key)
}

// Merge writes desired metadata to an object of the super cluster. It removes
// keys that came from the tenant earlier and are no longer desired, and keeps
// keys that the super cluster added.
func Merge(super metav1.Object, desired metav1.ObjectMeta) {
	had := super.GetAnnotations()
	labels := merge(super.GetLabels(), desired.Labels, listed(had[names.Labels]))
	annotations := merge(had, desired.Annotations, listed(had[names.Annotations]))
	for _, key := range []string{names.Labels, names.Annotations, names.OwnerReferences} {
		if _, wanted := desired.Annotations[key]; !wanted {
			delete(annotations, key)
		}
	}
	super.SetLabels(labels)
	super.SetAnnotations(annotations)
}

// merge returns current without the keys of old, overlaid with desired.
func merge(current, desired map[string]string, old []string) map[string]string {
	out := make(map[string]string, len(current))
	maps.Copy(out, current)
	for _, key := range old {
		delete(out, key)
	}
	maps.Copy(out, desired)
	return out
}

// Up copies the labels and annotations that are synced up from the super
// cluster's object to the tenant's.
func (t Tenant) Up(tenant, super metav1.Object) {
	if len(t.Transparent) == 0 {
		return
	}
	tenant.SetLabels(t.syncedUp(tenant.GetLabels(), super.GetLabels()))
	tenant.SetAnnotations(t.syncedUp(tenant.GetAnnotations(), super.GetAnnotations()))
}

// syncedUp returns the tenant's map with its transparent keys replaced by those
// of the super cluster.
func (t Tenant) syncedUp(tenant, super map[string]string) map[string]string {
	isTransparent := func(key string) bool {
		return hasPrefix(key, t.Transparent) && !strings.HasPrefix(key, names.Domain+"/")
	}
	out := maps.Clone(tenant)
	maps.DeleteFunc(out, func(key, _ string) bool { _, kept := super[key]; return isTransparent(key) && !kept })
	for k, v := range super {
		if isTransparent(k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// setKeys records the keys of a map in an annotation, unless the map is empty.
func setKeys(annotations map[string]string, annotation string, of map[string]string) {
	if len(of) > 0 {
		annotations[annotation] = strings.Join(slices.Sorted(maps.Keys(of)), ",")
	}
}

// listed parses the value that setKeys wrote.
func listed(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// hasPrefix reports whether a key begins with one of the prefixes.
func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}
