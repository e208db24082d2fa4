package patch

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// FuzzSet checks that no combination of paths and expressions panics, changes a
// protected field or the tenant's object, or is applied in part.
func FuzzSet(f *testing.F) {
	for _, seed := range [][2]string{
		{"/spec/nodeSelector/pool", "self.metadata.labels.tier"},
		{"/metadata/name", "'other'"},
		{"/metadata", "null"},
		{"/metadata/ownerReferences/0/name", "'other'"},
		{"/metadata/labels", "object.metadata.labels.transformMap(k, v, v + 'x')"},
		{"/metadata/labels/tenancy.x-k8s.io~1vcname", "null"},
		{"/metadata/annotations/-", "[1, 2u, 3.0, b'4', duration('5s'), timestamp('2026-01-02T03:04:05Z'), {'a': null}]"},
		{"/spec/containers/0/ports/-", "{'containerPort': 80}"},
		{"/spec/dnsNames/1", "optional.none()"},
		{"/-/-/-", "object"},
		{"/", "self"},
		{"/kind", "type(1)"},
		{"~", "tenant.key"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, path, expression string) {
		if len(expression) > 4096 {
			t.Skip("longer than the API allows")
		}
		fuzz(t, fields(path, expression))
	})
}

// FuzzJSONPatch checks the same for JSON Patches of two operations.
func FuzzJSONPatch(f *testing.F) {
	type seed struct{ op, path, from, value string }
	seeds := []seed{
		{"add", "/metadata/name", "", `"other"`},
		{"replace", "/metadata", "", `null`},
		{"add", "/metadata/labels", "", `{}`},
		{"remove", "/metadata/ownerReferences/0", "", ``},
		{"test", "/spec", "", `null`},
		{"move", "/metadata/annotations", "/metadata/labels", ``},
		{"copy", "/spec/-", "/spec", ``},
		{"add", "/spec/containers/-", "", `null`},
		{"test", "/spec/containers/1/x", "", `1`},
		{"replace", "/spec//", "", `1e400`},
		{"move", "/spec/containers/0/image", "/spec/containers/0", ``},
	}
	for i, one := range seeds {
		other := seeds[(i+1)%len(seeds)]
		f.Add(one.op, one.path, one.from, one.value, other.op, other.path, other.from, other.value)
	}
	f.Fuzz(func(t *testing.T, op1, path1, from1, value1, op2, path2, from2, value2 string) {
		patch, err := json.Marshal([]map[string]any{operation(op1, path1, from1, value1), operation(op2, path2, from2, value2)})
		if err != nil {
			t.Fatal(err)
		}
		fuzz(t, operations(string(patch)))
	})
}

// operation returns an operation of a JSON Patch without its empty fields.
func operation(op, path, from, value string) map[string]any {
	fields := map[string]any{"op": op, "path": path}
	if from != "" {
		fields["from"] = from
	}
	switch {
	case json.Valid([]byte(value)):
		fields["value"] = json.RawMessage(value)
	case value != "":
		fields["value"] = value
	}
	return fields
}

func fuzz(t *testing.T, patch tenancyv1alpha1.SyncPatch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	patches := set(fields("/metadata/labels/first", "'yes'"), patch)
	for kind, object := range objects() {
		before := object.DeepCopyObject().(client.Object)
		self := object.DeepCopyObject().(client.Object)
		err := patches.Apply(ctx, kind, object, self, blue)
		if ctx.Err() != nil {
			t.Fatal("it does not end")
		}
		if err != nil && !cmp.Equal(before, object) {
			t.Errorf("%s: changed in spite of %v", kind, err)
		}
		if diff := cmp.Diff(identityOf(before), identityOf(object)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		if was, is := before.GetObjectKind().GroupVersionKind(), object.GetObjectKind().GroupVersionKind(); was != is {
			t.Errorf("%s: was %v, is %v", kind, was, is)
		}
		if diff := cmp.Diff(before, self); diff != "" {
			t.Errorf("%s: self: %s", kind, diff)
		}
	}
}
