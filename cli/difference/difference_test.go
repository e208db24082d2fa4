package difference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFields(t *testing.T) {
	cases := map[string]struct {
		tenant, super string
		want          []Field
	}{
		"Equal": {"spec: {a: 1}", "spec: {a: 1}", nil},
		"Value": {"spec: {a: 1}", "spec: {a: 2}", []Field{{"spec.a", "1", "2"}}},
		"OneSide": {
			"spec: {a: 1}", "status: {b: x}",
			[]Field{{"spec.a", "1", ""}, {"status.b", "", `"x"`}},
		},
		"ElementsByName": {
			"spec: {containers: [{name: main, image: a}]}",
			"spec: {containers: [{name: added, image: x}, {name: main, image: b}]}",
			[]Field{{"spec.containers[added].image", "", `"x"`}, {"spec.containers[main].image", `"a"`, `"b"`}},
		},
		"ElementsByType": {
			"status: {conditions: [{type: Ready, status: 'True'}]}",
			"status: {conditions: [{type: Ready, status: 'False'}]}",
			[]Field{{"status.conditions[Ready].status", `"True"`, `"False"`}},
		},
		"ElementsByIndex": {"spec: {args: [a, b]}", "spec: {args: [a, c]}", []Field{{"spec.args[1]", `"b"`, `"c"`}}},
		"Identity": {
			"metadata: {name: a, uid: x, resourceVersion: '1', namespace: shop, ownerReferences: [{name: o}]}",
			"metadata: {name: a, uid: y, resourceVersion: '2', namespace: team-shop}", nil,
		},
		"PlatformsMetadata": {
			"metadata: {labels: {tenancy.x-k8s.io/from-super: 'true'}}",
			"metadata: {annotations: {tenancy.x-k8s.io/uid: x}, labels: {tenancy.x-k8s.io/vcname: red}}", nil,
		},
		"TranslatedLabel": {
			"metadata: {labels: {example.com/tier: web}}",
			"metadata: {labels: {labels.tenancy.x-k8s.io/example.com_tier: web}}", nil,
		},
		"Label": {
			"metadata: {labels: {app: a}}", "metadata: {annotations: {note: b}}",
			[]Field{{"metadata.annotations[note]", "", `"b"`}, {"metadata.labels[app]", `"a"`, ""}},
		},
		"Secret": {
			"{kind: Secret, data: {password: aHVudGVyMg==}, metadata: {annotations: {last: hunter2}}}",
			"{kind: Secret, data: {password: eHh4}}",
			[]Field{{"data.password", hidden, hidden}, {"metadata.annotations[last]", hidden, ""}},
		},
		"ForeignTypes": {"metadata: 3\nspec: [1]", "metadata: {labels: 3}\nspec: 1", []Field{{"spec", "", "1"}, {"spec[0]", "1", ""}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Fields(object(t, tc.tenant), object(t, tc.super))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
