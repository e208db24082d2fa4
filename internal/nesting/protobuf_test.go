package nesting

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
)

// decoded are the types of these tests.
var decoded = func() *Types {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme} {
		if err := add(types); err != nil {
			panic(err)
		}
	}
	return TypesOf(types, types)
}()

// definitions are the kind of requests for them.
var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// keyField is the key in a map's entry.
const keyField = 1

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
		"without a kind":                      {object("apiextensions.k8s.io/v1", "", inSpec(nots(most+1))), tooLarge},
		"without a version":                   {object("", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"a group without a version":           {object("example.com/", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"a version that is none":              {object("a/b/c", "CustomResourceDefinition", inSpec(nots(most+1))), tooLarge},
		"the second object":                   {append(definition(nil), in(inSpec(nots(most+1)), rawField)...), tooLarge},
		"without either":                      {object("", "", inSpec(nots(most+1))), tooLarge},
		"of another group without a kind":     {object("apps/v1", "", inSpec(nots(most+1))), http.StatusOK},
		"of a version without a decoder":      {object("apiextensions.k8s.io/v2", "CustomResourceDefinition", inSpec(nots(most+1))), http.StatusOK},
		"an internal version":                 {object("apps/__internal", "Deployment", []byte{1<<3 | wireGroup}), http.StatusOK},
		"of any version":                      {object("example.com/v7", "Status", []byte{1<<3 | wireGroup}), http.StatusBadRequest},
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
			if _, err := decoded.Check(tc.body, definitions); code(err) != tc.want {
				t.Errorf("got %v, want %d", err, tc.want)
			}
		})
	}
}

// TestEntriesOfTexts: of all kinds, a key or a value of a map has to end in its
// entry.
func TestEntriesOfTexts(t *testing.T) {
	const metadataField, labelsField, specField, extraField = 1, 11, 2, 5
	in, object := nestingtest.In, nestingtest.Object
	overlapping := func(numbers ...protowire.Number) []byte {
		last := len(numbers) - 1
		return in(nestingtest.Overlapping(numbers[last], 2, 10), numbers[:last]...)
	}
	label := func(entry ...byte) []byte { return object("v1", "Node", in(entry, metadataField, labelsField)) }
	for name, tc := range map[string]struct {
		body []byte
		want int32
	}{
		"texts":               {object("v1", "ConfigMap", overlapping(2)), http.StatusBadRequest},
		"bytes":               {object("v1", "Secret", overlapping(2)), http.StatusBadRequest},
		"labels":              {object("v1", "Pod", overlapping(metadataField, labelsField)), http.StatusBadRequest},
		"labels in a list":    {object("v1", "PodList", overlapping(2, metadataField, labelsField)), http.StatusBadRequest},
		"lists of texts":      {object("authorization.k8s.io/v1", "SubjectAccessReview", overlapping(specField, extraField)), http.StatusBadRequest},
		"quantities":          {object("v1", "ResourceQuota", overlapping(specField, 1)), http.StatusBadRequest},
		"not a map":           {object("v1", "Pod", overlapping(specField, 2)), http.StatusOK},
		"a label":             {label(keyField<<3|wireBytes, 1, 'a', valueField<<3|wireBytes, 1, 'b'), http.StatusOK},
		"no value":            {label(keyField<<3|wireBytes, 1, 'a'), http.StatusOK},
		"nothing":             {label(), http.StatusOK},
		"a key beyond it":     {label(keyField<<3|wireBytes, 2, 'a'), http.StatusBadRequest},
		"by a number":         {label(keyField<<3|wireVarint, 2, 'a'), http.StatusBadRequest},
		"a value beyond it":   {label(valueField<<3|wireBytes, 2, 'a'), http.StatusBadRequest},
		"a length beyond it":  {label(valueField<<3|wireBytes, 0x80), http.StatusBadRequest},
		"a length of 2^64-1":  {label(valueField<<3|wireBytes, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), http.StatusBadRequest},
		"a group in an entry": {label(3<<3 | wireGroup), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decoded.Check(tc.body, schema.GroupVersionKind{}); code(err) != tc.want {
				t.Errorf("got %v, want %d", err, tc.want)
			}
		})
	}
}

// TestElements: what the decoder makes of two bytes each is counted.
func TestElements(t *testing.T) {
	const specField, containersField, commandField, many = 2, 2, 3, 1000
	in, definition := nestingtest.In, nestingtest.Definition
	repeat := func(message []byte, behind ...byte) []byte { return append(bytes.Repeat(message, many), behind...) }
	pod := func(spec []byte) []byte { return nestingtest.Object("v1", "Pod", in(spec, specField)) }
	container := in(nil, containersField)
	for name, tc := range map[string]struct {
		body []byte
		want int
	}{
		"nothing":                     {nil, 0},
		"an empty pod":                {nestingtest.Object("v1", "Pod", nil), 0},
		"containers":                  {pod(repeat(container)), 1 + many},
		"in front of a damage":        {pod(repeat(container, 0xff)), 1 + many},
		"the number is cut off":       {pod(repeat(nestingtest.CutOff(nil, containersField))), 1 + many},
		"in turns":                    {pod(repeat(append(in(nil, 1), container...))), 1 + 2*many},
		"one with many arguments":     {pod(in(repeat(in(nil, commandField)), containersField)), 2 + many},
		"one field after another":     {pod(repeat(in(nil, 20))), 1 + many}, // a message, which is made once
		"pods in a list":              {nestingtest.Object("v1", "PodList", repeat(in(nil, 2))), many},
		"entries of texts":            {nestingtest.Object("v1", "ConfigMap", repeat(in(nil, 2))), 0},
		"entries of messages":         {nestingtest.Object("v1", "ResourceQuota", in(repeat(in(nil, 1, valueField)), specField)), 1 + many},
		"entries without a value":     {nestingtest.Object("v1", "ResourceQuota", in(repeat(in(nil, 1)), specField)), 1 + many},
		"properties without a value":  {definition(repeat(in(nil, nestingtest.PropertiesField))), schemaDepth - 1 + many},
		"JSON in a schema":            {definition(in(in([]byte(`[{},{"a":null}]`), 1), 8)), schemaDepth + 4},
		"fields of a manager":         {nestingtest.Object("v1", "Node", in([]byte(`{"f:a":{}}`), 1, 17, 7, 1)), 3 + 2},
		"numbers in one value":        {pod(in(in([]byte{1, 2, 3}, 4), 14)), 3},
		"many values of one":          {nestingtest.Object("v1", "ResourceQuota", in(repeat(in(nil, valueField)), specField, 1)), 1 + many},
		"lists of texts":              {nestingtest.Object("authentication.k8s.io/v1", "TokenReview", in(repeat(in(nil, 1)), 3, 2, 4, valueField)), 3 + many},
		"texts that are one":          {nestingtest.Object("v1", "ConfigMap", in(container, 1, 1)), 1},
		"fields that no type has":     {pod(repeat(in(nil, 1000))), 1},
		"of a kind without a decoder": {nestingtest.Object("v1", "Pods", in(repeat(container), specField)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decoded.Check(tc.body, schema.GroupVersionKind{}); got != tc.want || err != nil {
				t.Errorf("got %d elements, want %d: %v", got, tc.want, err)
			}
		})
	}
}

// TestValues: what a value may be whose decoder is not that of a message or a text.
func TestValues(t *testing.T) {
	const specField, hardField, securityField, groupsField, enumField = 2, 1, 14, 4, 20
	in := nestingtest.In
	quantity := func(message []byte) []byte {
		return nestingtest.Object("v1", "ResourceQuota", in(message, specField, hardField, valueField))
	}
	text := func(text string) []byte { return quantity(in([]byte(text), textField)) }
	groups := func(numbers ...byte) []byte {
		return nestingtest.Object("v1", "Pod", in(numbers, specField, securityField, groupsField))
	}
	enum := func(levels int) []byte {
		return nestingtest.Definition(in([]byte(strings.Repeat("[", levels)+strings.Repeat("]", levels)), enumField, rawField))
	}
	const tooLarge, bad, ok = http.StatusRequestEntityTooLarge, http.StatusBadRequest, http.StatusOK
	for name, tc := range map[string]struct {
		body []byte
		want int32
	}{
		"a quantity":                     {text("1.5Gi"), ok},
		"exa":                            {text("1E"), ok},
		"exbi":                           {text("1Ei"), ok},
		"an exponent":                    {text("12e-9"), ok},
		"an exponent with zeros":         {text("12E+000006"), ok},
		"the longest exponent":           {text("1e-999"), ok},
		"a longer one":                   {text("1e-1000"), bad},
		"an exponent that takes years":   {text("1e-99999999"), bad},
		"of a large number":              {text("12345678901234567890E9999999"), bad},
		"many digits":                    {text(strings.Repeat("9", longestQuantity)), ok},
		"more digits":                    {text(strings.Repeat("9", longestQuantity+1)), bad},
		"no quantity":                    {text("a"), ok},
		"the second of two":              {quantity(slices.Concat(in([]byte("1"), textField), in([]byte("1e9999"), textField))), bad},
		"a length below zero":            {quantity([]byte{textField<<3 | wireBytes, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), bad},
		"another field of a quantity":    {quantity([]byte{9 << 3, 1}), ok},
		"one without a value":            {quantity([]byte{9 << 3}), bad},
		"one without a tag":              {quantity([]byte{0x80}), bad},
		"numbers":                        {groups(1, 0x80, 1), ok},
		"a number beyond its list":       {groups(1, 0x80), bad},
		"a number of too many bytes":     {groups(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), bad},
		"JSON":                           {enum(deepest), ok},
		"JSON that is nested too deeply": {enum(deepest + 1), tooLarge},
		"a template that is nested so":   {nestingtest.Object("apps/v1", "ControllerRevision", in([]byte(strings.Repeat("[", deepest+1)), specField, rawField)), tooLarge},
		"fields of a manager, nested so": {nestingtest.Object("v1", "Node", in([]byte(strings.Repeat(`{"f:a":`, deepest+1)), 1, 17, 7, rawField)), tooLarge},
		"text of a ConfigMap, nested so": {nestingtest.Object("v1", "ConfigMap", in([]byte(strings.Repeat("[", deepest+1)), specField, valueField)), ok},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decoded.Check(tc.body, schema.GroupVersionKind{}); code(err) != tc.want {
				t.Errorf("got %v, want %d", err, tc.want)
			}
		})
	}
}

// TestHonestObjects: what clients encode passes, of all types and with all fields,
// and each struct that a decoder makes of it counts.
func TestHonestObjects(t *testing.T) {
	types := decoded.schemes[0]
	schemas := func(serializer.CodecFactory) []any {
		return []any{func(s *apiextensionsv1.JSONSchemaProps, _ randfill.Continue) {
			s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": {Not: &apiextensionsv1.JSONSchemaProps{}}}
		}, func(s *apiextensionsv1beta1.JSONSchemaProps, _ randfill.Continue) {
			s.AllOf = []apiextensionsv1beta1.JSONSchemaProps{{}, {}}
		}}
	}
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, schemas)(serializer.NewCodecFactory(types))
	filler := randfill.NewWithSeed(1).Funcs(funcs...).NilChance(0).NumElements(1, 2)
	for kind := range types.AllKnownTypes() {
		object, err := types.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		_, isEvent := object.(*metav1.WatchEvent) // no client sends one
		if isEvent || kind.Version == runtime.APIVersionInternal || !isMessage(reflect.TypeOf(object).Elem()) {
			continue
		}
		filler.Fill(object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		buffer := &bytes.Buffer{}
		if err := protobuf.NewSerializer(types, types).Encode(object, buffer); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		got, err := decoded.Check(buffer.Bytes(), schema.GroupVersionKind{})
		if want := messagesIn(reflect.ValueOf(object).Elem()); got < want || err != nil {
			t.Errorf("%v: %d elements, want at least %d: %v", kind, got, want, err)
		}
	}
}

// messagesIn counts the structs in a value that a decoder has made, one by one.
func messagesIn(v reflect.Value) int {
	count := 0
	made := func(inner reflect.Value) {
		if inner.Kind() == reflect.Struct {
			count++
		}
		count += messagesIn(inner)
	}
	switch v.Kind() { //nolint:exhaustive // others have none
	case reflect.Pointer:
		if !v.IsNil() {
			made(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				made(v.Index(i))
			}
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			made(value)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			if _, ok := numberOf(f); ok {
				count += messagesIn(value)
			}
		}
	}
	return count
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
		if _, err := decoded.Check(buffer.Bytes(), schema.GroupVersionKind{}); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

// TestTheDecoderIsFollowed: what the tables of the other tests are about is what
// the decoder does.
func TestTheDecoderIsFollowed(t *testing.T) {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := props.Unmarshal(nestingtest.Doubling(3)); err != nil || len(props.Properties) != 1 {
		t.Errorf("a value beyond its entry is decoded no more: %v", err)
	}
	pod := &corev1.PodSecurityContext{} // a list of numbers, behind which an unknown field has all that follows
	if err := pod.Unmarshal([]byte{4<<3 | wireBytes, 1, 0x80, 9<<3 | wireBytes, 2, 0, 0}); err == nil || len(pod.SupplementalGroups) != 1 {
		t.Errorf("a number beyond its list is decoded no more: %v", err)
	}
	props.Reset()
	if err := props.Unmarshal(append(nestingtest.In(nestingtest.Nots(1), nestingtest.NotField), 0xff)); err == nil || props.Not == nil || props.Not.Not == nil {
		t.Errorf("what is before a damage is decoded no more: %v", err)
	}
}

// TestAllTypes: no other type of an API contains itself, so all are less deep than
// the limit, and keys and values of all maps are texts or messages. The check would
// take others for these.
func TestAllTypes(t *testing.T) {
	found := map[string]bool{}
	for _, known := range decoded.schemes[0].AllKnownTypes() {
		walkTypes(t, known, nil, found)
	}
	want := []string{"JSONSchemaProps", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// walkTypes notes which types contain themselves, by what protobuf encodes.
func walkTypes(t *testing.T, goType reflect.Type, within []reflect.Type, found map[string]bool) {
	t.Helper()
	for !isMessage(goType) && (goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map) {
		if goType.Kind() == reflect.Map {
			value := goType.Elem()
			isBytes := value.Kind() == reflect.Slice && value.Elem().Kind() == reflect.Uint8
			if goType.Key().Kind() != reflect.String || value.Kind() != reflect.String && !isBytes && !isMessage(value) {
				t.Errorf("%v in %v", goType, within)
			}
		}
		goType = goType.Elem()
	}
	if goType.Kind() != reflect.Struct {
		return
	}
	if i := slices.Index(within, goType); i >= 0 {
		for _, inner := range within[i:] {
			found[inner.Name()] = true
		}
		return
	}
	if len(within) == deepestMessages {
		t.Fatalf("too deep: %v", within)
	}
	for f := range goType.Fields() {
		if _, ok := numberOf(f); ok {
			walkTypes(t, f.Type, append(slices.Clone(within), goType), found)
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
	f.Fuzz(func(t *testing.T, encoded []byte) {
		if _, err := decoded.Check(nestingtest.Definition(encoded), definitions); err != nil {
			return
		}
		made := &apiextensionsv1.JSONSchemaProps{}
		_ = made.Unmarshal(encoded)
		if got := levelsOf(made); got > deepestMessages-schemaDepth+1 {
			t.Errorf("decoded %d levels", got)
		}
	})
}

// FuzzElements: what passes makes the decoder make no more messages than are
// counted, also if it is damaged.
func FuzzElements(f *testing.F) {
	const specField, containersField, securityField, groupsField, sysctlsField, unknownField = 2, 2, 14, 4, 7, 100
	in := nestingtest.In
	hidden := bytes.Repeat(in(nil, sysctlsField), 4)
	f.Add(in(hidden, specField, securityField))
	f.Add(in(append(bytes.Repeat(in(nil, containersField), 5), 0xff), specField))
	f.Add(in(slices.Concat(in([]byte{0x80}, groupsField), in(append([]byte{0}, hidden[1:]...), unknownField)), specField, securityField))
	f.Add(in(bytes.Repeat(nestingtest.CutOff(nil, containersField), 3), specField))
	f.Add(in(append(in([]byte("cpu"), keyField), in(in([]byte("1e3"), textField), valueField)...), specField, containersField, 8, 1))
	f.Fuzz(func(t *testing.T, pod []byte) {
		got, err := decoded.Check(nestingtest.Object("v1", "Pod", pod), schema.GroupVersionKind{})
		if err != nil {
			return
		}
		object := &corev1.Pod{}
		_ = object.Unmarshal(pod)
		if want := messagesIn(reflect.ValueOf(object).Elem()); got < want {
			t.Errorf("%d elements are counted, and %d made", got, want)
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

func BenchmarkCheck(b *testing.B) {
	const dataField, size = 2, 2000
	entry := append(nestingtest.In([]byte("key"), keyField), nestingtest.In(make([]byte, size), valueField)...)
	body := nestingtest.Object("v1", "ConfigMap", nestingtest.In(entry, dataField))
	for b.Loop() {
		if _, err := decoded.Check(body, schema.GroupVersionKind{}); err != nil {
			b.Fatal(err)
		}
	}
}
