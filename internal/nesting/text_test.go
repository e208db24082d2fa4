package nesting

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// code is that of the response to a request with a body.
func code(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	}
	return http.StatusOK
}

func TestCheckText(t *testing.T) {
	const (
		jsonType, yamlType, applyType = "application/json", "application/yaml", "application/apply-patch+yaml"
		tooLarge                      = http.StatusRequestEntityTooLarge
	)
	objects := func(depth int) string { return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1) }
	inBlocks := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	const moves = (DeepestPatched - deepest) / 2
	patch := func(operation string, times int) string {
		return "[" + strings.Repeat(operation+",", times) + `{"op":"add","path":"/a","value":[{"/":"/"}]}]`
	}
	move := `{"op":"move","from":"/a","path":"/spec/b"}`
	for name, tc := range map[string]struct {
		body, mediaType string
		want            int32
	}{
		"nothing":                          {"", jsonType, http.StatusOK},
		"objects":                          {objects(deepest), jsonType, http.StatusOK},
		"objects that are too deep":        {objects(deepest + 1), jsonType, tooLarge},
		"arrays that are too deep":         {strings.Repeat("[", deepest+1), jsonType, tooLarge},
		"without a type":                   {objects(deepest + 1), "", tooLarge},
		"a JSON patch":                     {"[" + objects(deepest) + "]", "application/json-patch+json", tooLarge},
		"a patch that moves":               {patch(move, moves), "application/json-patch+json", http.StatusOK},
		"a patch that moves once more":     {patch(move, moves+1), "application/json-patch+json", tooLarge},
		"a patch that copies":              {patch(`{"op":"copy","from":"/a","path":"/spec/b"}`, moves+1), "application/json-patch+json", tooLarge},
		"a patch that adds":                {patch(`{"op":"add","path":"/spec/b","value":{}}`, 9_999), "application/json-patch+json", http.StatusOK},
		"a patch with more than upstream":  {patch(`{"op":"add","path":"/spec/b","value":{}}`, 10_000), "application/json-patch+json", tooLarge},
		"a patch with a deep path":         {patch(`{"op":"add","path":"`+strings.Repeat("/a", DeepestPatched)+`","value":{}}`, 1), "application/json-patch+json", tooLarge},
		"a patch with other names":         {patch(`{"op":"move","Op":"add","path":"/spec/b","Path":""}`, moves+1), "application/json-patch+json", tooLarge},
		"a patch with an escaped path":     {patch(`{"op":"\u006dove","path":"/spec\u002fb"}`, moves+1), "application/json-patch+json", tooLarge},
		"a patch that is none":             {`{"op":"add"}`, "application/json-patch+json", http.StatusOK},
		"a merge patch":                    {objects(deepest + 1), "application/merge-patch+json", tooLarge},
		"a strategic merge patch":          {objects(deepest + 1), "application/strategic-merge-patch+json", tooLarge},
		"many beside each other":           {"[" + strings.Repeat("{},", 10_000) + "{}]", jsonType, http.StatusOK},
		"brackets in text":                 {`{"a":"` + strings.Repeat("{[", 10_000) + `"}`, jsonType, http.StatusOK},
		"a quote in text":                  {`{"a":"\"","b":` + objects(deepest) + "}", jsonType, tooLarge},
		"what upstream does not decode":    {strings.Repeat("{", 10_000), "application/octet-stream", http.StatusOK},
		"JSON in the place of YAML":        {objects(deepest + 1), yamlType, tooLarge},
		"JSON that is applied":             {objects(deepest + 1), applyType, tooLarge},
		"YAML":                             {inBlocks(deepest), yamlType, http.StatusOK},
		"YAML that is too deep":            {inBlocks(deepest + 1), yamlType, tooLarge},
		"YAML in one line":                 {strings.Repeat("- ", deepest+1), applyType, tooLarge},
		"YAML with brackets in text":       {"a: |\n  " + strings.Repeat("{[", 10_000), yamlType, http.StatusOK},
		"YAML that is none":                {"a: [" + strings.Repeat("{", deepest), yamlType, http.StatusOK},
		"YAML deeper than upstream allows": {strings.Repeat("[", 20_000), yamlType, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := CheckText([]byte(tc.body), tc.mediaType, true); code(err) != tc.want {
				t.Errorf("got %d, want %d", code(err), tc.want)
			}
		})
	}
	if _, err := CheckText([]byte(patch(move, moves+1)), "application/json-patch+json", false); err != nil {
		t.Errorf("a long patch of another API: %v", err)
	}
	for depth, want := range map[int]int32{deepest: http.StatusOK, deepest + 1: tooLarge} {
		if got := code(CheckPatch([]byte(patch(move, moves)), depth, DeepestPatched)); got != want {
			t.Errorf("a patch of an object of depth %d: got %d, want %d", depth, got, want)
		}
	}
}

func FuzzCheckText(f *testing.F) {
	f.Add([]byte(`{"a":[1,{}]}`), "application/json")
	f.Add([]byte(`[{"op":"move","path":"/a/b"}]`), "application/json-patch+json")
	f.Add([]byte("a: [&a b, *a]"), "application/yaml")
	f.Fuzz(func(t *testing.T, data []byte, mediaType string) {
		elements, err := CheckText(data, mediaType, true)
		if elements < 0 || mediaType == "application/json" && elements > len(data) {
			t.Errorf("got %d elements of %d bytes: %v", elements, len(data), err)
		}
	})
}
