package resourcemetrics

import (
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// The fields by which can be selected.
const (
	nameField      = metav1.ObjectNameField
	namespaceField = "metadata.namespace"
)

// selection selects some of the tenant's objects.
type selection struct {
	name   string
	labels labels.Selector
	fields fields.Selector
}

// selectionOf reads the parameters of a request.
func selectionOf(r request, query url.Values) (selection, error) {
	s := selection{name: r.name}
	var err error
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, fmt.Errorf("labelSelector: %w", err)
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return s, fmt.Errorf("fieldSelector: %w", err)
	}
	for _, requirement := range s.fields.Requirements() {
		if requirement.Field != nameField && requirement.Field != namespaceField {
			return s, fmt.Errorf("fieldSelector: %q is not supported: it can be %s or %s", requirement.Field, nameField, namespaceField)
		}
	}
	if r.resource == nodes && !s.labels.Empty() {
		return s, fmt.Errorf("labelSelector: the metrics of nodes have no labels: name the nodes, or leave %q out", s.labels)
	}
	return s, nil
}

// matches reports whether an object is selected.
func (s selection) matches(obj metav1.ObjectMeta) bool {
	return (s.name == "" || s.name == obj.Name) && s.labels.Matches(labels.Set(obj.Labels)) &&
		s.fields.Matches(fields.Set{nameField: obj.Name, namespaceField: obj.Namespace})
}
