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

// Labels that stay in the tenant: ours, which a tenant could otherwise forge; those by which the super cluster's admins
// lower the guard of a namespace; and the one that the apiserver sets by itself. All others go down, since a selector of the
// tenant may name them.
var privateLabels = []string{
	names.Domain + "/",
	"pod-security.kubernetes.io/",
	"resource.kubernetes.io/admin-access",
	"kubernetes.io/metadata.name",
}

// Annotations that stay in the tenant: ours; notes that tools of the tenant leave for themselves; what the tenant's apiserver
// enforces, and the super cluster's could not; how far the tenant's controllers are with a volume, and the class that it is claimed
// of, which is checked and goes down as a field; and instructions to the nodes' network plugins, which are the super cluster's to
// give.
var privateAnnotations = []string{
	names.Domain + "/",
	"kubectl.kubernetes.io/",
	"deployment.kubernetes.io/",
	"scheduler.alpha.kubernetes.io/",
	"kubernetes.io/enforce-mountable-secrets",
	"pv.kubernetes.io/",
	"volume.kubernetes.io/",
	"volume.beta.kubernetes.io/",
	"k8s.v1.cni.cncf.io/",
	"v1.multus-cni.io/",
	"cni.projectcalico.org/",
	"kubernetes.io/ingress-bandwidth",
	"kubernetes.io/egress-bandwidth",
}

// Down is the metadata in the super cluster of a tenant's object, under the key that the super cluster knows it by.
func (t Tenant) Down(obj metav1.Object, superKey types.NamespacedName) metav1.ObjectMeta {
	labels := t.goingDown(obj.GetLabels(), privateLabels)
	annotations := t.goingDown(obj.GetAnnotations(), privateAnnotations)
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

// Template is the metadata of a template of a tenant's, of which the super cluster makes objects: the labels and annotations that go
// down. What it makes is nobody's copy, so nothing says whose it is.
func (t Tenant) Template(template metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Labels:      t.goingDown(template.Labels, privateLabels),
		Annotations: t.goingDown(template.Annotations, privateAnnotations),
	}
}

// goingDown is the part of the tenant's labels or annotations that goes down; never nil.
func (t Tenant) goingDown(in map[string]string, private []string) map[string]string {
	out := make(map[string]string, len(in)+7)
	for k, v := range in {
		if !t.stays(k, private) && !hasPrefix(k, t.Transparent) {
			out[k] = v
		}
	}
	return out
}

// LabelStays says whether labels with a key stay in the tenant, so that the copy has none, or another one.
func (t Tenant) LabelStays(key string) bool { return t.stays(key, privateLabels) }

// AnnotationStays says whether annotations with a key stay in the tenant, so that the copy has none, or another one.
func (t Tenant) AnnotationStays(key string) bool { return t.stays(key, privateAnnotations) }

func (t Tenant) stays(key string, private []string) bool {
	return hasPrefix(key, private) || hasPrefix(key, t.Opaque)
}

// Merge writes desired metadata into an object of the super cluster. Keys that came from the tenant earlier and are
// gone there are removed; keys that the super cluster added are its own and stay.
func Merge(super metav1.Object, desired metav1.ObjectMeta) {
	had := super.GetAnnotations()
	labels := merge(super.GetLabels(), desired.Labels, keys(had[names.Labels]))
	annotations := merge(had, desired.Annotations, keys(had[names.Annotations]))
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

// keys reads what setKeys wrote.
func keys(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// hasPrefix says whether a key begins with one of the prefixes.
func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}
