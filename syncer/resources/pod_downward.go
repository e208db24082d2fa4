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

// Fields of a pod that its containers can read and that differ in the copy.
const (
	fieldNamespace   = "metadata.namespace"
	fieldUID         = "metadata.uid"
	fieldLabels      = "metadata.labels"
	fieldAnnotations = "metadata.annotations"
)

// podFields makes containers read the fields of the tenant's pod. If the copy's
// field differs, the tenant's value is stored in an annotation of the copy, and
// read from there. Kubelets update files when annotations change.
type podFields struct {
	who    translate.Tenant
	tenant *corev1.Pod
	// notes are these annotations.
	notes map[string]string
}

// fieldsFor returns the fields of a tenant's pod.
func fieldsFor(who translate.Tenant, tenant *corev1.Pod) *podFields {
	return &podFields{who: who, tenant: tenant, notes: map[string]string{}}
}

// translateFiles translates the field references of a volume's files.
func (f *podFields) translateFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		f.translate(files[i].FieldRef)
	}
}

// translate changes a field reference to the annotation with the tenant's
// value.
func (f *podFields) translate(ref *corev1.ObjectFieldSelector) {
	if ref == nil {
		return
	}
	if annotation := f.annotation(ref.FieldPath); annotation != "" {
		ref.FieldPath = fmt.Sprintf("%s['%s']", fieldAnnotations, annotation)
	}
}

// annotation returns the key of the annotation for a field of the tenant's pod;
// empty if the copy has the same value.
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

// value returns the value of a field of the tenant's pod, if the copy's
// differs: all labels or annotations, and single ones that stay in the tenant.
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

// splitKey splits a path such as metadata.labels['app'] into the map and the
// key.
func splitKey(path string) (of, key string) {
	rest, quoted := strings.CutSuffix(path, "']")
	of, key, keyed := strings.Cut(rest, "['")
	if !quoted || !keyed {
		return path, ""
	}
	return of, key
}

// fileOf returns the content of a file with a map, in the format of kubelets: a
// line for each key, in order, with the value quoted.
func fileOf(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

// fit reports whether the copy can have all annotations that fields are read
// from.
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

// thatFit returns the annotations, except the one with all of the tenant's
// annotations if it has become too long: the file then remains unchanged.
func (f *podFields) thatFit() map[string]string {
	if !f.fit() {
		delete(f.notes, names.Field(fieldAnnotations))
	}
	return f.notes
}

// admitFields rejects a pod whose annotations are too long for a volume that
// contains all of them.
func admitFields(v kinds.View, tenant *corev1.Pod) error {
	fields := fieldsFor(v.Tenant, tenant)
	spec := corev1.PodSpec{Volumes: tenant.Spec.Volumes}
	translateVolumes(spec.DeepCopy().Volumes, fields)
	if fields.fit() {
		return nil
	}
	return field.Forbidden(field.NewPath("metadata", "annotations"), fmt.Sprintf(
		"a volume has them in a file, so the annotations and the text of the file may have at most %d bytes in total",
		apivalidation.TotalAnnotationSizeLimitB))
}
