package tables_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/tables"
)

func binding(name string) map[string]any {
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": name, "creationTimestamp": time.Now().Add(-72 * time.Hour).UTC().Format(time.RFC3339)},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "view"},
		"subjects": []any{
			map[string]any{"kind": "User", "name": "anna"}, map[string]any{"kind": "User", "name": "ben"}, map[string]any{"kind": "Group", "name": "red"},
			map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": "shop"},
		},
	}
}

func TestPrint(t *testing.T) {
	list := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBindingList",
		"metadata": map[string]any{"resourceVersion": "7", "continue": "more"}, "items": []any{binding("a:b"), binding("c")},
	}
	for name, tt := range map[string]struct {
		document map[string]any
		include  metav1.IncludeObjectPolicy
		rows     int
		kind     string // of the objects
	}{
		"a list":              {list, metav1.IncludeMetadata, 2, "PartialObjectMetadata"},
		"an object":           {binding("a:b"), "", 1, "PartialObjectMetadata"},
		"an object as it is":  {binding("a:b"), metav1.IncludeObject, 1, "ClusterRoleBinding"},
		"without the objects": {binding("a:b"), metav1.IncludeNone, 1, ""},
		"an empty list":       {map[string]any{"items": []any{}}, "", 0, ""},
	} {
		if err := tables.Print(tt.document, tables.Options{Kind: "ClusterRoleBinding", Version: "v1", Include: tt.include}); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(tt.document)
		if err != nil {
			t.Fatal(err)
		}
		var table metav1.Table
		if err := json.Unmarshal(data, &table); err != nil {
			t.Fatal(err)
		}
		if table.Kind != "Table" || table.APIVersion != "meta.k8s.io/v1" || len(table.Rows) != tt.rows || len(table.ColumnDefinitions) != 6 {
			t.Errorf("%s is %s", name, data)
		}
		for _, row := range table.Rows[:min(1, len(table.Rows))] {
			want := []any{"a:b", "ClusterRole/view", "3d", "anna, ben", "red", "shop/robot"}
			if diff := cmp.Diff(want, row.Cells); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			var object metav1.TypeMeta
			_ = json.Unmarshal(row.Object.Raw, &object)
			if object.Kind != tt.kind {
				t.Errorf("%s has rows of %q, want %q", name, object.Kind, tt.kind)
			}
		}
	}
	if list["metadata"].(map[string]any)["continue"] != "more" {
		t.Error("the token to continue the list is lost")
	}
	class := map[string]any{"metadata": map[string]any{"name": "fast"}, "provisioner": "example.com/disk", "allowVolumeExpansion": true}
	if err := tables.Print(class, tables.Options{Kind: "StorageClass"}); err != nil {
		t.Fatal(err)
	}
	row := class["rows"].([]any)[0].(map[string]any)
	if diff := cmp.Diff([]any{"fast", "example.com/disk", "<none>", "<none>", "true", "<unknown>"}, row["cells"]); diff != "" {
		t.Errorf("a StorageClass (-want +got):\n%s", diff)
	}
}
