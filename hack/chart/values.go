package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const valuesHeader = `# Values of the chart

[Install](install.md) describes the chart. These are its values, with their defaults. Helm refuses values that are not here.

<!-- Written by make generate, of charts/virtualcluster/values.yaml. -->
`

// value is a value of the chart with its comment.
type value struct {
	path    []string
	comment string
}

var valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):`)

// describe returns the reference of the values in a values.yaml, by their
// comments.
func describe(file string) (string, error) {
	defaults := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(file), &defaults); err != nil {
		return "", err
	}
	values := commented(file)
	if missing := undocumented(defaults, nil, values); len(missing) > 0 {
		return "", fmt.Errorf("values without a comment in the line above: %s", strings.Join(missing, ", "))
	}
	out := &strings.Builder{}
	out.WriteString(valuesHeader)
	for _, v := range values {
		if len(v.path) == 1 {
			fmt.Fprintf(out, "\n## %s\n\n%s\n\n| value | default | |\n|---|---|---|\n", v.path[0], v.comment)
			continue
		}
		def, err := json.Marshal(find(defaults, v.path))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", strings.Join(v.path, "."), def, v.comment)
	}
	return out.String(), nil
}

// commented returns the values that have a comment in the lines above, in their
// order.
func commented(file string) []value {
	var values []value
	var path, comment []string
	for line := range strings.Lines(file) {
		text := strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(text, "# "); ok {
			comment = append(comment, words)
			continue
		}
		if m := valueLine.FindStringSubmatch(line); m != nil {
			depth := len(m[1]) / 2
			path = slices.Concat(path[:min(depth, len(path))], []string{m[2]})
			if len(comment) > 0 {
				values = append(values, value{path: path, comment: strings.Join(comment, " ")})
			}
		}
		comment = nil
	}
	return values
}

// undocumented returns the values below a path that neither have a comment nor
// are part of one that has.
func undocumented(defaults map[string]any, parent []string, values []value) []string {
	var missing []string
	for name, def := range defaults {
		path := slices.Concat(parent, []string{name})
		if len(path) > 1 && has(values, path) {
			continue
		}
		if nested, ok := def.(map[string]any); ok && len(nested) > 0 {
			missing = append(missing, undocumented(nested, path, values)...)
			continue
		}
		missing = append(missing, strings.Join(path, "."))
	}
	return missing
}

// has reports whether the value at a path is among those with a comment.
func has(values []value, path []string) bool {
	return slices.ContainsFunc(values, func(v value) bool { return slices.Equal(v.path, path) })
}

// find returns the value at a path.
func find(values map[string]any, path []string) any {
	for _, name := range path[:len(path)-1] {
		values, _ = values[name].(map[string]any)
	}
	return values[path[len(path)-1]]
}
