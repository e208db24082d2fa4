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

// Down is the metadata in the super cluster of a tenant's object of a kind, under the key that the super cluster knows it by.
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

// stamp says whose object it is.
func (t Tenant) stamp(meta *metav1.ObjectMeta, obj metav1.Object) {
	meta.Labels[names.VCName] = t.Name
	meta.Labels[names.VCNamespace] = t.Namespace
	maps.Copy(meta.Annotations, t.Stamp(obj))
	if owners := obj.GetOwnerReferences(); len(owners) > 0 {
		data, _ := json.Marshal(owners) //nolint:errchkjson // strings and booleans cannot fail
		meta.Annotations[names.OwnerReferences] = string(data)
	}
}

// Stamp are the annotations that say whose an object of the super cluster is, and of which of the tenant's objects.
func (t Tenant) Stamp(obj metav1.Object) map[string]string {
	return map[string]string{
		names.VCName:      t.Name,
		names.VCNamespace: t.Namespace,
		names.Cluster:     t.Key,
		names.UID:         string(obj.GetUID()),
		names.Namespace:   cmp.Or(obj.GetNamespace(), obj.GetName()),
	}
}

// Template is the metadata of a template in a tenant's object of a kind, of which the super cluster makes objects: the labels and
// annotations that go down. What it makes is no copy, so nothing says whose it is.
func (t Tenant) Template(kind string, template metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Labels:      t.Labels(kind, template.Labels),
		Annotations: t.annotations(kind, template.Annotations),
	}
}

// Labels returns the labels that the copy of a tenant's object has of the tenant's; never nil.
func (t Tenant) Labels(kind string, of map[string]string) map[string]string {
	out := make(map[string]string, len(of)+7)
	for key, value := range of {
		if superKey := t.LabelKey(kind, key); superKey != "" && !t.isSupers(kind, key) {
			out[superKey] = value
		}
	}
	return out
}

// LabelKey returns the key under which the super cluster knows a label of a tenant's object; empty if the label stays in the
// tenant. Labels that selectors need and that are not carried have a key of ours there, which no other controller interprets.
func (t Tenant) LabelKey(kind, key string) string {
	switch {
	case hasPrefix(key, t.Opaque):
		return ""
	case t.isSupers(kind, key), t.carriesLabel(kind, key):
		return key
	case kind == podKind, kind == namespaceKind:
		return names.Label(key)
	}
	return ""
}

// isSupers reports whether both sides have the super cluster's value of a label, so that the tenant's does not go down.
func (t Tenant) isSupers(kind, key string) bool {
	return hasPrefix(key, t.Transparent) || slices.Contains(supers[kind], key)
}

// annotations returns the annotations that the copy of a tenant's object has of the tenant's; never nil.
func (t Tenant) annotations(kind string, of map[string]string) map[string]string {
	out := make(map[string]string, 7)
	for key, value := range of {
		if t.carriesAnnotation(kind, key) && !hasPrefix(key, t.Transparent) {
			out[key] = value
		}
	}
	return out
}

// AnnotationStays reports whether an annotation stays in the tenant, so that the copy has none, or another one.
func (t Tenant) AnnotationStays(kind, key string) bool {
	return hasPrefix(key, t.Opaque) || !hasPrefix(key, t.Transparent) && !t.carriesAnnotation(kind, key)
}

// Merge writes desired metadata into an object of the super cluster. Keys that came from the tenant earlier and are
// gone there are removed; keys that the super cluster added are its own and stay.
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

// merge is current without the keys of old, and with desired on top.
func merge(current, desired map[string]string, old []string) map[string]string {
	out := make(map[string]string, len(current))
	maps.Copy(out, current)
	for _, key := range old {
		delete(out, key)
	}
	maps.Copy(out, desired)
	return out
}

// Up copies the labels and annotations that the tenant is shown from the super cluster's object into the tenant's.
func (t Tenant) Up(tenant, super metav1.Object) {
	if len(t.Transparent) == 0 {
		return
	}
	tenant.SetLabels(t.comingUp(tenant.GetLabels(), super.GetLabels()))
	tenant.SetAnnotations(t.comingUp(tenant.GetAnnotations(), super.GetAnnotations()))
}

// comingUp replaces the transparent keys of the tenant by those of the super cluster.
func (t Tenant) comingUp(tenant, super map[string]string) map[string]string {
	shown := func(key string) bool {
		return hasPrefix(key, t.Transparent) && !strings.HasPrefix(key, names.Domain+"/")
	}
	out := maps.Clone(tenant)
	maps.DeleteFunc(out, func(key, _ string) bool { _, kept := super[key]; return shown(key) && !kept })
	for k, v := range super {
		if shown(k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// setKeys notes the keys of a map in an annotation; none where the map is empty.
func setKeys(annotations map[string]string, annotation string, of map[string]string) {
	if len(of) > 0 {
		annotations[annotation] = strings.Join(slices.Sorted(maps.Keys(of)), ",")
	}
}

// listed reads what setKeys wrote.
func listed(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// hasPrefix says whether a key begins with one of the prefixes.
func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}
