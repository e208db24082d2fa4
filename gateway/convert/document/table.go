package document

import "github.com/virtualcluster/virtualcluster/gateway/convert/kinds"

// table converts a Table: the object of each row, and the cells with names.
func (r *Response) table(table Object) error {
	if columns, ok := table["columnDefinitions"].([]any); ok && len(columns) > 0 {
		r.columns = columns
	}
	rows, _ := table["rows"].([]any)
	for _, each := range rows {
		row, _ := each.(Object)
		object, _ := row["object"].(Object)
		namespace := r.Namespace
		if object != nil {
			if err := r.object(object); err != nil {
				return err
			}
			if name, ok := r.namespaceOf(object).(string); ok {
				namespace = name
			}
		}
		cells, _ := row["cells"].([]any)
		if err := r.cells(cells, namespace); err != nil {
			return err
		}
	}
	return nil
}

// cells converts the cells of a row about an object in a namespace of the tenant.
func (r *Response) cells(cells []any, namespace string) error {
	u := up{Namer: r.Namer, namespace: namespace}
	for i := range min(len(cells), len(r.columns)) {
		column, _ := r.columns[i].(Object)
		name, _ := column["name"].(string)
		means, ok := r.Kind.Cells[name]
		if !ok {
			continue
		}
		turned, err := u.turn(kinds.Rule{Means: means}, cells[i])
		if err != nil {
			return err
		}
		cells[i] = turned
	}
	return nil
}
