// Package tables makes the Tables of shelved objects, with the columns of an
// apiserver: a custom resource cannot have them.
package tables

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Options are those of a Table.
type Options struct {
	// Kind is that of the objects, and Version that of the Table's group.
	Kind, Version string
	// Include is what of the objects the rows have.
	Include metav1.IncludeObjectPolicy
}

// columns are those of a kind, and the cells of one object.
type columns struct {
	definitions []metav1.TableColumnDefinition
	cells       func(map[string]any) ([]any, error)
}

// byKind has the columns.
var byKind = map[string]columns{
	"Role": {roleColumns, roleCells}, "ClusterRole": {roleColumns, roleCells},
	"RoleBinding": {bindingColumns, bindingCells}, "ClusterRoleBinding": {bindingColumns, bindingCells},
	"CertificateSigningRequest":        {requestColumns, requestCells},
	"ValidatingWebhookConfiguration":   {webhookColumns, webhookCells},
	"MutatingWebhookConfiguration":     {webhookColumns, webhookCells},
	"ValidatingAdmissionPolicy":        {policyColumns, validatingPolicyCells},
	"MutatingAdmissionPolicy":          {mutatingPolicyColumns, mutatingPolicyCells},
	"ValidatingAdmissionPolicyBinding": {admissionPolicyBinding, policyBindingCells},
	"MutatingAdmissionPolicyBinding":   {admissionPolicyBinding, policyBindingCells},
}

// Print replaces an object, or a list of objects, by a Table.
func Print(document map[string]any, options Options) error {
	columns := columnsOf(options.Kind)
	table := metav1.Table{ColumnDefinitions: columns.definitions}
	table.APIVersion, table.Kind = metav1.GroupName+"/"+orV1(options.Version), "Table"
	metadata, _ := document["metadata"].(map[string]any)
	table.ResourceVersion, _ = metadata["resourceVersion"].(string)
	items, isList := document["items"].([]any)
	if isList {
		table.Continue, _ = metadata["continue"].(string)
	} else {
		items = []any{maps.Clone(document)}
	}
	for _, item := range items {
		object, _ := item.(map[string]any)
		cells, err := columns.cells(object)
		if err != nil {
			return err
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return replace(document, &table, items, options.Include)
}

// replace writes a Table with its objects into a document.
func replace(document map[string]any, table *metav1.Table, items []any, include metav1.IncludeObjectPolicy) error {
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(table)
	if err != nil {
		return fmt.Errorf("write a Table: %w", err)
	}
	rows, _ := converted["rows"].([]any)
	if rows == nil {
		converted["rows"] = []any{}
	}
	for i := range rows {
		row, _ := rows[i].(map[string]any)
		if row["object"] = included(items[i].(map[string]any), include); include == metav1.IncludeNone {
			delete(row, "object")
		}
	}
	clear(document)
	maps.Copy(document, converted)
	return nil
}

func included(object map[string]any, include metav1.IncludeObjectPolicy) map[string]any {
	if include == metav1.IncludeObject {
		return object
	}
	return map[string]any{
		"apiVersion": metav1.SchemeGroupVersion.String(), "kind": "PartialObjectMetadata", "metadata": object["metadata"],
	}
}

func orV1(version string) string {
	if version == "" {
		return "v1"
	}
	return version
}

// age returns how old an object is.
func age(meta metav1.ObjectMeta) string {
	if meta.CreationTimestamp.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(meta.CreationTimestamp.Time))
}
