package document_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// spliced returns a document that was converted while it was read, byte by byte
// so that each token is cut.
func spliced(of *document.Response, text []byte) (document.Object, string, error) {
	var out bytes.Buffer
	if err := of.Stream(&out, iotest.OneByteReader(bytes.NewReader(text))); err != nil {
		return nil, out.String(), err
	}
	object, err := document.ParseTrusted(out.Bytes())
	return object, out.String(), err
}

// sameAsTree asserts that a document is converted to the same, or to none,
// spliced and as a tree.
func sameAsTree(t *testing.T, kind kinds.Kind, many bool, object document.Object) {
	t.Helper()
	text, err := document.Write(object)
	if err != nil {
		t.Fatal(err)
	}
	tree, splice := response(kind), response(kind)
	tree.Many, splice.Many = many, many
	treeErr := tree.Up(object)
	got, written, err := spliced(splice, text)
	if (err == nil) != (treeErr == nil) {
		t.Fatalf("%s\nthe tree returns error %v, the splice %v", text, treeErr, err)
	}
	if err != nil {
		return
	}
	want, _ := document.Write(object)
	if diff := cmp.Diff(clone(t, object), got); diff != "" {
		t.Fatalf("%s\nas a tree (-) %s\nspliced (+) %s\n%s", text, want, written, diff)
	}
}

// random makes documents at random: of the fields with rules and of some others,
// with values that are right, wrong, or the platform's.
type random struct{ *rand.Rand }

func (r random) of(list ...any) any { return list[r.IntN(len(list))] }

func (r random) text() string {
	return r.of("", "shop", key, key+"-shop", key+"-other", key+"-gone", "blue-shop", `in "`+key+`-shop" \ <a> é`, names.ConvertedGroup(key)+"example.com/v1",
		"v1", "Namespace", "metadata.annotations['"+names.Namespace+"']", "converted.tenancy.x-k8s.io/"+key+"/vault", "x--c4t64", "app=web",
		names.ShelvedGroup+"/v1", "rbac.authorization.k8s.io/v1").(string)
}

func (r random) key() string {
	return r.of("app", "a/b", `q"\é`, "kubernetes.io/metadata.name", names.Converted, names.Namespace, "pod-security.kubernetes.io/enforce",
		"labels.tenancy.x-k8s.io/pod-security.kubernetes.io/enforce", "tenancy.x-k8s.io/a", ".", "$patch").(string)
}

func (r random) labels(prefix string) any {
	labels := document.Object{}
	for range r.IntN(4) {
		labels[prefix+r.key()] = r.of(r.text(), document.Object{}, nil)
	}
	return labels
}

func (r random) managers() any {
	metadata := document.Object{}
	for _, field := range []string{"f:labels", "f:annotations"} {
		if r.IntN(3) > 0 {
			metadata[field] = r.of(r.labels("f:"), r.labels(""), "a")
		}
	}
	if r.IntN(2) == 0 {
		metadata["f:ownerReferences"] = document.Object{".": document.Object{}}
	}
	return []any{
		document.Object{"manager": r.text(), "apiVersion": r.of(r.text(), 1), "fieldsV1": r.of(
			document.Object{"f:metadata": metadata, "f:spec": r.labels("f:")}, document.Object{"f:metadata": nil}, nil)},
		r.of(document.Object{}, nil, "a"),
	}
}

// value is one of a field, with a rule or without.
func (r random) value(field *kinds.Field, depth int) any {
	if r.IntN(12) == 0 || field == nil || depth > 12 {
		return r.of(nil, true, 7, 1.5, r.text(), []any{r.text(), nil}, document.Object{r.key(): r.text()})
	}
	switch {
	case field.Rule.Means == kinds.ManagedFields, field.Rule.Means == kinds.ManagedNamespaceFields:
		return r.managers()
	case field.Rule.Means == kinds.Labels, field.Rule.Means == kinds.NamespaceLabels:
		return r.labels("")
	case field.Rule.Means != "":
		return r.of(r.text(), r.text(), r.text(), document.Object{
			"apiVersion": r.text(), "kind": r.of("Namespace", "ClusterRole", "Pod"), "name": r.text(),
			"matchLabels": r.labels(""), "matchExpressions": []any{document.Object{"key": r.key(), "operator": "In", "values": []any{r.text()}}},
		})
	case field.Items != nil:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, r.value(field.Items, depth+1))
		}
		return list
	}
	object := document.Object{r.key(): r.of(r.text(), 1, []any{}, document.Object{})}
	for name, child := range field.Fields {
		if depth < 2 || r.IntN(4) > 0 {
			object[name] = r.value(child, depth+1)
		}
	}
	return object
}

// object is an object, most often one that the tenant has.
func (r random) object(kind kinds.Kind) document.Object {
	object, _ := r.value(kind.Fields(), 0).(document.Object)
	if object == nil {
		return document.Object{}
	}
	if metadata, ok := object["metadata"].(document.Object); ok && r.IntN(10) > 0 {
		for _, field := range []string{"name", "namespace"} {
			if kind.Fields().Fields["metadata"].Fields[field] != nil {
				metadata[field] = r.of(key+"-shop", key+"-other", nil)
			}
		}
	}
	return object
}

func servedKinds() []kinds.Kind {
	all := append(kinds.All(), kinds.Custom("example.com", "widgets", "Widget", true), kinds.Custom("example.com", "gadgets", "Gadget", false))
	return slices.DeleteFunc(all, func(k kinds.Kind) bool { return !k.Served() || k.Class == kinds.Answered })
}

// TestSpliceIsTree: what is spliced is what the conversion of a tree returns, for
// objects, lists and Tables of all kinds.
func TestSpliceIsTree(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	for _, kind := range servedKinds() {
		t.Run(kind.GroupResource().String(), func(t *testing.T) {
			for range 150 {
				sameAsTree(t, kind, false, r.object(kind))
				items := []any{r.object(kind), nil, r.object(kind)}
				list := document.Object{"kind": kind.Kind + "List", "apiVersion": r.text(), "items": r.of(items, []any{}, nil),
					"metadata": document.Object{"resourceVersion": "7", "continue": r.of("c", "")}}
				sameAsTree(t, kind, true, list)
				row := document.Object{"cells": []any{r.text(), r.text(), 1, nil}, "object": r.of(r.object(kind), nil)}
				table := document.Object{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": document.Object{}, "rows": []any{row}}
				columns := []any{document.Object{"name": "Name", "priority": 0}, document.Object{"name": r.of("Message", "Pod-Selector")}}
				table["columnDefinitions"] = columns
				sameAsTree(t, kind, r.IntN(2) == 0, table)
			}
		})
	}
}

// TestSpliceRefuses: no text is converted that is not a document of the kind that
// is expected, and nothing of it is written.
func TestSpliceRefuses(t *testing.T) {
	good := `{"metadata":{"namespace":"` + key + `-shop"}}`
	for name, tt := range map[string]struct {
		text string
		many bool
	}{
		"nothing":                 {"", false},
		"no list":                 {"", true},
		"half an object":          {good[:len(good)-1], false},
		"half a list":             {`{"items":[` + good, true},
		"half a text":             {`{"metadata":"a`, false},
		"two documents":           {good + good, false},
		"two lists":               {`{"items":[]}{}`, true},
		"a comma at the end":      {`{"items":[` + good + `,]}`, true},
		"a comma at the front":    {`{,"metadata":{}}`, false},
		"no colon":                {`{"metadata" {}}`, false},
		"no name":                 {`{metadata:{}}`, false},
		"no comma":                {`{"metadata":{} "a":1}`, false},
		"an object as a list":     {good, true},
		"a list of another":       {`{"items":[{"metadata":{"namespace":"blue-shop"}}]}`, true},
		"another's, escaped":      {`{"met\u0061data":{"namespace":"blue-shop"}}`, false},
		"another's, in a Table":   {`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"metadata":{"namespace":"blue-shop"}}}]}`, true},
		"another's, a second key": {`{"metadata":{"namespace":"` + key + `-shop","namespace":"blue-shop"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := response(kinds.Find("", "pods"))
			of.Many = tt.many
			if _, written, err := spliced(of, []byte(tt.text)); err == nil || written != "" {
				t.Errorf("got error %v, written %s", err, written)
			} else if strings.Contains(err.Error(), "blue") {
				t.Errorf("the error shows the namespace: %v", err)
			}
		})
	}
	of := listResponse(kinds.Find("", "pods"))
	endless := io.MultiReader(strings.NewReader(`{"items":["`), endless('x'))
	if err := of.Stream(io.Discard, endless); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("an object without an end: got error %v", err)
	}
}

// endless is a text without an end.
type endless byte

// Read implements io.Reader.
func (e endless) Read(data []byte) (int, error) {
	for i := range data {
		data[i] = byte(e)
	}
	return len(data), nil
}

// TestNamesOfKinds: the names that a tenant chooses for the kinds of a CRD do not
// change how its objects are converted.
func TestNamesOfKinds(t *testing.T) {
	for _, kind := range []string{"AllowList", "Table", "Status"} {
		widgets := kinds.Custom("example.com", "widgets", kind, true)
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"labels":{%q:%q}},"items":[],"rows":[]}`,
			names.ConvertedGroup(key)+"example.com/v1", kind, key+"-shop", names.Converted, key)
		list := `{"apiVersion":"` + names.ConvertedGroup(key) + `example.com/v1","items":[` + object + `],"kind":"Others","metadata":{}}`
		for text, of := range map[string]*document.Response{object: response(widgets), list: listResponse(widgets)} {
			tree, err := document.ParseTrusted([]byte(text))
			if err == nil {
				err = of.Up(tree)
			}
			if err != nil {
				t.Fatalf("%s is not converted: %v", text, err)
			}
			data, _ := document.Write(tree)
			_, written, err := spliced(of, []byte(text))
			for _, got := range []string{string(data), written} {
				if err != nil || strings.Contains(got, key) || strings.Contains(got, names.ConvertedGroup(key)) || !strings.Contains(got, "shop") {
					t.Errorf("the tenant gets %s, %v", got, err)
				}
			}
		}
	}
}

// TestEvents: the events of a watch are read one by one, until the text ends.
func TestEvents(t *testing.T) {
	text := `{"type":"ADDED","object":{"a":"}{\\\""}}` + "\n" + ` {"object":{},"type":"BOOKMARK"}` + "\n" + `{"type":"ADDED","obj`
	events := document.NewEvents(iotest.OneByteReader(strings.NewReader(text)))
	var got []string
	for {
		kind, object, ok := events.Next()
		if !ok {
			break
		}
		got = append(got, kind+" "+string(object))
	}
	if want := []string{`ADDED {"a":"}{\\\""}`, "BOOKMARK {}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzSplice: a text is converted to the same, spliced and as a tree.
func FuzzSplice(f *testing.F) {
	f.Add(`{"metadata":{"namespace":"` + key + `-shop","labels":{"` + names.Converted + `":"a","b":null}},"status":{"message":"` + key + `"}}`)
	f.Add(`{"kind":"List","items":[{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}}]}}]}`)
	f.Add(` { "metadata" : [ ] , "spec" : -1.5e3 } `)
	kind := kinds.Find("", "pods")
	f.Fuzz(func(t *testing.T, text string) {
		object, err := document.Parse([]byte(text))
		if err != nil {
			return
		}
		_, many := object["items"]
		for name := range object {
			if many && !slices.Contains([]string{"kind", "apiVersion", "metadata", "items"}, name) {
				return
			}
		}
		if metadata, ok := object["metadata"].(document.Object); many && !ok && (metadata != nil || object["metadata"] != nil) {
			return
		}
		sameAsTree(t, kind, many, object)
	})
}
