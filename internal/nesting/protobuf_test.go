package nesting

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
)

// schemaDepth is the depth of the schema of a definition with one in a body.
const schemaDepth = 5

func TestCheckProtobuf(t *testing.T) {
	const (
		rawField, itemsField = 2, 2 // of the envelope, and of a list
		tooLarge             = http.StatusRequestEntityTooLarge
	)
	in, nots, object, inSpec, definition := nestingtest.In, nestingtest.Nots, nestingtest.Object, nestingtest.InSpec, nestingtest.Definition
	most := deepestMessages - schemaDepth
	truncated := func(tag uint64) []byte { return protowire.AppendVarint(nil, tag|1<<35) } // beyond the 32 bits of a number
	hidden := nots(most)
	hidden = append(protowire.AppendVarint(truncated(nestingtest.NotField<<3|wireBytes), uint64(len(hidden))), hidden...)
	damaged := nots(0)
	for range most + 1 {
		damaged = append(in(damaged, nestingtest.NotField), 0xff)
	}
	property := func(key string, schema []byte) []byte {
		return in(append(in([]byte(key), keyField), in(schema, valueField)...), nestingtest.PropertiesField)
	}
	var properties []byte
	for range most {
		properties = property("a", properties)
	}
	for name, tc := range map[string]struct {
		body []byte
		want int32
	}{
		"nothing":                             {nil, http.StatusOK},
		"no protobuf":                         {[]byte("k8s\x00\xff\xff"), http.StatusOK},
		"JSON in its place":                   {[]byte("{}"), http.StatusBadRequest},
		"schemas in schemas":                  {definition(nots(most)), http.StatusOK},
		"one more":                            {definition(nots(most + 1)), tooLarge},
		"properties":                          {definition(properties), http.StatusOK},
		"properties in one more":              {definition(property("a", properties)), tooLarge},
		"the number is cut off":               {definition(hidden), tooLarge},
		"what is behind is damaged":           {definition(damaged), tooLarge},
		"in a list":                           {object("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", in(inSpec(nots(most)), itemsField)), tooLarge},
		"of v1beta1":                          {object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", in(nots(most+2), nestingtest.SpecField, 5, nestingtest.OpenAPIField)), tooLarge},
		"without a kind":                      {object("", "", inSpec(nots(most+1))), tooLarge},
		"without a version":                   {object("", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"a group without a version":           {object("example.com/", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"a version that is none":              {object("a/b/c", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"the second object":                   {append(definition(nil), in(inSpec(nots(most+1)), rawField)...), tooLarge},
		"another kind":                        {object("meta.k8s.io/v1", "DeleteOptions", []byte{1<<3 | 3}), http.StatusOK},
		"a value beyond its entry":            {definition(nestingtest.Doubling(2)), http.StatusBadRequest},
		"beyond it by a wrong type":           {definition(append(in([]byte{valueField<<3 | wireVarint, 5}, nestingtest.PropertiesField), nots(2)...)), http.StatusBadRequest},
		"an entry that ends early":            {definition(in([]byte{0xff}, nestingtest.PropertiesField)), http.StatusBadRequest},
		"an entry with another field":         {definition(in([]byte{3<<3 | wireVarint, 1}, nestingtest.PropertiesField)), http.StatusOK},
		"an entry with a field without value": {definition(in([]byte{3<<3 | wireFixed64, 1}, nestingtest.PropertiesField)), http.StatusBadRequest},
		"a group":                             {definition(append([]byte{1<<3 | 3}, nots(1)...)), http.StatusBadRequest},
		"other wire types":                    {definition([]byte{9<<3 | wireFixed64, 0, 0, 0, 0, 0, 0, 0, 0, 9<<3 | wireFixed32, 0, 0, 0, 0}), http.StatusOK},
		"a number that has no end":            {definition([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := code(Check(tc.body, runtime.ContentTypeProtobuf, true)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	if err := Check(definition(nots(most+1)), runtime.ContentTypeProtobuf, false); err != nil {
		t.Errorf("for another API: %v", err)
	}
}

// TestHonestDefinitions: definitions as clients encode them pass, with all kinds of
// fields.
func TestHonestDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	types := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	list.APIVersion, list.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinitionList"
	objects := []runtime.Object{list}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, one); err != nil {
			t.Fatal(err)
		}
		if one.Kind != "CustomResourceDefinition" {
			continue
		}
		one.CreationTimestamp = metav1.Now()
		one.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &one.CreationTimestamp, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
		list.Items, objects = append(list.Items, *one), append(objects, one)
	}
	for _, object := range objects {
		buffer := &bytes.Buffer{}
		if err := protobuf.NewSerializer(types, types).Encode(object, buffer); err != nil {
			t.Fatal(err)
		}
		if err := Check(buffer.Bytes(), runtime.ContentTypeProtobuf, true); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

// TestTheDecoderIsFollowed: what the tables of the other tests are about is what
// the decoder does.
func TestTheDecoderIsFollowed(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := schema.Unmarshal(nestingtest.Doubling(3)); err != nil || len(schema.Properties) != 1 {
		t.Errorf("a value beyond its entry is decoded no more: %v", err)
	}
	schema.Reset()
	if err := schema.Unmarshal(append(nestingtest.In(nestingtest.Nots(1), nestingtest.NotField), 0xff)); err == nil || schema.Not == nil || schema.Not.Not == nil {
		t.Errorf("what is before a damage is decoded no more: %v", err)
	}
}

// TestWhatContainsItself: no other type of an API does. A decoder without a limit
// for one of a new version would be a hole.
func TestWhatContainsItself(t *testing.T) {
	found := map[string]bool{}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	for _, known := range types.AllKnownTypes() {
		containing(known, nil, found)
	}
	want := []string{"JSONSchemaProps", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"}
	var got []string
	for name := range found {
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// containing notes which types contain themselves, by what protobuf encodes.
func containing(t reflect.Type, within []reflect.Type, found map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	if i := slices.Index(within, t); i >= 0 {
		for _, inner := range within[i:] {
			found[inner.Name()] = true
		}
		return
	}
	for f := range t.Fields() {
		if _, ok := numberOf(f); ok {
			containing(f.Type, append(slices.Clone(within), t), found)
		}
	}
}

// FuzzCheckProtobuf: what passes is decoded to no more levels than are allowed,
// also if it is damaged.
func FuzzCheckProtobuf(f *testing.F) {
	f.Add(nestingtest.Nots(3))
	f.Add(nestingtest.Nots(deepestMessages + 3))
	f.Add(nestingtest.Doubling(5))
	f.Add(nestingtest.In(append(nestingtest.In([]byte("a"), keyField), nestingtest.In(nestingtest.Nots(2), valueField)...), nestingtest.PropertiesField))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if Check(nestingtest.Definition(schema), runtime.ContentTypeProtobuf, true) != nil {
			return
		}
		decoded := &apiextensionsv1.JSONSchemaProps{}
		_ = decoded.Unmarshal(schema)
		if got := levelsOf(decoded); got > deepestMessages-schemaDepth+1 {
			t.Errorf("decoded %d levels", got)
		}
	})
}

// levelsOf is the depth of a schema by the fields that the seeds have.
func levelsOf(schema *apiextensionsv1.JSONSchemaProps) int {
	if schema == nil {
		return 0
	}
	deepest := levelsOf(schema.Not)
	for _, property := range schema.Properties {
		deepest = max(deepest, levelsOf(&property))
	}
	for i := range schema.AllOf {
		deepest = max(deepest, levelsOf(&schema.AllOf[i]))
	}
	return deepest + 1
}
