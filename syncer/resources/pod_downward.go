package resources

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Fields of a pod that its containers can read and that are other ones on the copy.
const (
	fieldNamespace   = "metadata.namespace"
	fieldUID         = "metadata.uid"
	fieldLabels      = "metadata.labels"
	fieldAnnotations = "metadata.annotations"
)

// podFields has containers read the fields of their pod as the tenant knows them. Where the copy's field is another one, the
// tenant's is kept in an annotation of the copy, and read from there. Kubelets follow changes of annotations in files.
type podFields struct {
	who    translate.Tenant
	tenant *corev1.Pod
	// notes are the annotations.
	notes map[string]string
}

// fieldsFor reads the fields of a tenant's pod.
func fieldsFor(who translate.Tenant, tenant *corev1.Pod) *podFields {
	return &podFields{who: who, tenant: tenant, notes: map[string]string{}}
}

// translateFiles translates what files of a volume hold.
func (f *podFields) translateFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		f.translate(files[i].FieldRef)
	}
}

// translate has a reference to a field lead to where the copy keeps the tenant's.
func (f *podFields) translate(ref *corev1.ObjectFieldSelector) {
	if ref == nil {
		return
	}
	if annotation := f.annotation(ref.FieldPath); annotation != "" {
		ref.FieldPath = fmt.Sprintf("%s['%s']", fieldAnnotations, annotation)
	}
}

// annotation is the one that a field of the tenant's is kept in; none if the copy has the same field.
func (f *podFields) annotation(path string) string {
	switch path {
	case fieldNamespace:
		return names.Namespace
	case fieldUID:
		return names.UID
	}
	value, differs := f.value(path)
	if !differs {
		return ""
	}
	f.notes[names.Field(path)] = value
	return names.Field(path)
}

// value is what the tenant's pod has in a field, if the copy does not have the same: all labels or annotations, of which the
// copy has others, and single ones that stay in the tenant.
func (f *podFields) value(path string) (value string, differs bool) {
	of, key := splitKey(path)
	switch {
	case path == fieldLabels:
		return fileOf(f.tenant.Labels), true
	case path == fieldAnnotations:
		return fileOf(f.tenant.Annotations), true
	case of == fieldLabels && key != "" && f.who.LabelKey(podKind.Kind, key) != key:
		return f.tenant.Labels[key], true
	case of == fieldAnnotations && f.who.AnnotationStays(podKind.Kind, key):
		return f.tenant.Annotations[key], true
	}
	return "", false
}

// splitKey splits a path such as metadata.labels['app'] into the map and the key.
func splitKey(path string) (of, key string) {
	rest, quoted := strings.CutSuffix(path, "']")
	of, key, keyed := strings.Cut(rest, "['")
	if !quoted || !keyed {
		return path, ""
	}
	return of, key
}

// fileOf is the text of a file that shows a map, as kubelets write it: a line for each key, in order, with the value quoted.
func fileOf(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

// fit says whether the copy can have all annotations that the tenant's pod has and the fields are read from.
func (f *podFields) fit() bool {
	if _, all := f.notes[names.Field(fieldAnnotations)]; !all {
		return true
	}
	size := 0
	for _, annotations := range []map[string]string{f.who.Down(podKind.Kind, f.tenant, types.NamespacedName{}).Annotations, f.notes} {
		for key, value := range annotations {
			size += len(key) + len(value)
		}
	}
	return size <= apivalidation.TotalAnnotationSizeLimitB
}

// thatFit are the annotations, without the one that holds all of the tenant's if it has become too long: the file then stays
// what it was.
func (f *podFields) thatFit() map[string]string {
	if !f.fit() {
		delete(f.notes, names.Field(fieldAnnotations))
	}
	return f.notes
}

// admitFields makes sure that a file can hold all annotations where a volume of the pod has one.
func admitFields(v kinds.View, tenant *corev1.Pod) error {
	fields := fieldsFor(v.Tenant, tenant)
	spec := corev1.PodSpec{Volumes: tenant.Spec.Volumes}
	translateVolumes(spec.DeepCopy().Volumes, fields)
	if fields.fit() {
		return nil
	}
	return field.Forbidden(field.NewPath("metadata", "annotations"), fmt.Sprintf(
		"a volume shows them in a file, so they and their text may have %d bytes together", apivalidation.TotalAnnotationSizeLimitB))
}
