package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplate(t *testing.T) {
	const labels = "    {{- include \"virtualcluster.labels\" (list . \"part\") | nindent 4 }}\n"
	for name, tt := range map[string]struct {
		set            set
		manifest, want string
		err            string
	}{
		"labels and namespace": {
			set:      set{component: "part"},
			manifest: "kind: A\nmetadata:\n  name: a\n  namespace: vc-system\nspec: {}\n",
			want:     "kind: A\nmetadata:\n  labels:\n" + labels + "  name: a\n  namespace: {{ .Release.Namespace }}\nspec: {}\n",
		},
		"labels of its own, at the end": {
			set:      set{component: "part"},
			manifest: "kind: A\nmetadata:\n  name: a\n  labels:\n    b: c\n",
			want:     "kind: A\nmetadata:\n  name: a\n  labels:\n" + labels + "    b: c\n",
		},
		"several objects": {
			set:      set{component: "part"},
			manifest: "kind: A\nmetadata:\n  name: a\n---\nkind: B\nmetadata:\n  labels:\n    b: c\n  name: b\n",
			want: "kind: A\nmetadata:\n  labels:\n" + labels + "  name: a\n---\nkind: B\nmetadata:\n  labels:\n" + labels +
				"    b: c\n  name: b\n",
		},
		"labels elsewhere": {
			set:      set{component: "part"},
			manifest: "kind: A\nmetadata:\n  name: a\nspec:\n  labels:\n    b: c\n",
			want:     "kind: A\nmetadata:\n  labels:\n" + labels + "  name: a\nspec:\n  labels:\n    b: c\n",
		},
		"a condition and a replacement": {
			set:      set{component: "part", when: ".Values.on", replace: []string{"old", "new"}},
			manifest: "kind: old\n",
			want:     "{{- if .Values.on }}\nkind: new\n{{- end }}\n",
		},
		"nothing to replace": {set: set{replace: []string{"old", "new"}}, manifest: "kind: A\n", err: `"old" is not in it`},
		"braces":             {manifest: "a: '{{ b }}'\n", err: "braces"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.set.template(tt.manifest)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	got, err := describe("# The part.\npart:\n  # How many.\n  replicas: 2\n  image:\n    # Its tag, or\n    # nothing.\n    tag: \"\"\n" +
		"  # Amounts.\n  requests:\n    cpu: 1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"## part\n\nThe part.\n", "| `part.replicas` | `2` | How many. |\n", "| `part.image.tag` | `\"\"` | Its tag, or nothing. |\n",
		"| `part.requests` | `{\"cpu\":1}` | Amounts. |\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
	if _, err := describe("part:\n  replicas: 2\n"); err == nil || !strings.Contains(err.Error(), "part.replicas") {
		t.Errorf("a value without a comment: %v", err)
	}
}
