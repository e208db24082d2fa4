package documents

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/cli/command"
)

const root = "../.."

func all(t *testing.T) []Block {
	t.Helper()
	blocks, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func TestParse(t *testing.T) {
	page := strings.Join([]string{
		"# Page", "", "```sh", "one", "```", "", "1. do:", "", "   <!-- test: environment=make tenants=red,blue in=red types=yes -->",
		"   ```yaml", "   two: 2", "     three: 3", "   ```", "",
	}, "\n")
	got, err := parse("page.md", page)
	want := []Block{
		{Page: "page.md", Line: 3, Language: "sh", Text: "one\n"},
		{
			Page: "page.md", Line: 10, Language: "yaml", Text: "two: 2\n  three: 3\n",
			Environment: "make", Tenants: []string{"red", "blue"}, Context: "red", Types: "yes",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for name, text := range map[string]string{
		"no end":   "```sh\none\n",
		"no block": "<!-- test: environment=make -->\n",
		"unknown":  "<!-- test: slow -->\n```sh\n```\n",
	} {
		if _, err := parse("page.md", text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCommands(t *testing.T) {
	block := Block{Text: "cd x\na 'b c' \\\n  --d   # e\nn=$(f g) && h \"$n-i\" | j > k\nm - <<EOF\nl\nEOF\n"}
	got, err := block.Commands(t.Context())
	want := [][]string{{"a", "b c", "--d"}, {"f", "g"}, {"h", "-i"}, {"j"}, {"m", "-"}}
	sort := func(all [][]string) [][]string { // the parts of a pipe run at once
		slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
		return all
	}
	if diff := cmp.Diff(want, sort(got)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := os.Stat("k"); err == nil {
		t.Error("a command has written a file")
	}
}

// TestEveryBlockHasAnEnvironment checks the environments of all blocks, and
// prints those that no test runs, with the reason.
func TestEveryBlockHasAnEnvironment(t *testing.T) {
	reasons := Environments()
	unused := maps.Clone(reasons)
	for _, b := range all(t) {
		reason, known := reasons[b.Environment]
		switch {
		case b.Language != "sh" && b.Language != "yaml":
			if b.Environment != "" {
				t.Errorf("%s: a block of %q is not tested, and has an environment", b, b.Language)
			}
		case slices.Contains([]string{Cluster, Nodes, Installation}, b.Environment):
		case known:
			delete(unused, b.Environment)
			t.Logf("%s is not run: %s", b, reason)
		default:
			t.Errorf("%s: the environment %q is not one of %v", b, b.Environment, slices.Sorted(maps.Keys(reasons)))
		}
	}
	if len(unused) > 0 {
		t.Errorf("no block has these environments: %v", slices.Sorted(maps.Keys(unused)))
	}
}

// TestCommandsAreValid checks the commands of all blocks, wherever they run: the
// verbs and flags of kubectl vc, the targets of make, and the values of Helm.
func TestCommandsAreValid(t *testing.T) {
	for _, b := range all(t) {
		if b.Language != "sh" {
			continue
		}
		commands, err := b.Commands(t.Context())
		if err != nil {
			t.Error(err)
		}
		if len(commands) == 0 && !strings.Contains(b.Text, "/") { // a path is no name that the shell does not find
			t.Errorf("%s has no commands", b)
		}
		for _, words := range commands {
			check(t, b.String(), words)
		}
	}
}

// TestExamplesAreValid checks the commands of kubectl vc in the text and in the
// generated reference.
func TestExamplesAreValid(t *testing.T) {
	inline := regexp.MustCompile("`(kubectl vc [a-z]+ [^`\\[]+)`")
	example := regexp.MustCompile(`(?m)^ +(kubectl vc [^\[\n]+)$`)
	pages := map[string]bool{}
	for _, b := range all(t) {
		pages[b.Page] = true
	}
	for page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range slices.Concat(inline.FindAllStringSubmatch(string(text), -1), example.FindAllStringSubmatch(string(text), -1)) {
			commands, err := Block{Page: page, Text: m[1]}.Commands(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, words := range commands {
				check(t, page, words)
			}
		}
	}
}

func check(t *testing.T, where string, words []string) {
	t.Helper()
	switch {
	case len(words) > 1 && words[0] == "kubectl" && words[1] == "vc":
		checkKubectlVC(t, where, words[2:])
	case words[0] == "make":
		checkMake(t, where, words[1:])
	case words[0] == "helm":
		checkHelm(t, where, words[1:])
	}
}

// checkKubectlVC parses a command line of kubectl vc.
func checkKubectlVC(t *testing.T, where string, args []string) {
	t.Helper()
	tree := command.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	verb, rest, err := tree.Find(args)
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	if err == nil && verb == tree && len(args) > 0 {
		t.Errorf("%s: kubectl vc has no verb %s", where, args[0])
	}
	if err == nil {
		err = verb.ValidateArgs(verb.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: kubectl vc %s: %v", where, strings.Join(args, " "), err)
	}
}

func checkMake(t *testing.T, where string, args []string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		pattern := `(?m)^(\.PHONY:.* )?` + regexp.QuoteMeta(arg) + `:`
		if variable, _, ok := strings.Cut(arg, "="); ok {
			pattern = `\b` + regexp.QuoteMeta(variable) + `\b`
		}
		if !regexp.MustCompile(pattern).Match(makefile) {
			t.Errorf("%s: the Makefile has no %s", where, arg)
		}
	}
}

// chartValues returns the values of the chart.
func chartValues(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "charts/virtualcluster/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestValuesExist checks that the chart has the values of the blocks with values.
func TestValuesExist(t *testing.T) {
	for _, b := range all(t) {
		if !b.IsValues() {
			continue
		}
		values := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(b.Text), &values); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		checkValues(t, b.String(), values, chartValues(t))
	}
}

// checkValues checks the keys of values. Those of a map that is empty in the
// chart are free.
func checkValues(t *testing.T, where string, values, chart map[string]any) {
	t.Helper()
	for key, value := range values {
		known, ok := chart[key]
		if !ok {
			t.Errorf("%s: the chart has no value %s", where, key)
		}
		below, isMap := value.(map[string]any)
		if level, _ := known.(map[string]any); isMap && len(level) > 0 {
			checkValues(t, where, below, level)
		}
	}
}

// checkHelm checks that the chart has the values.
func checkHelm(t *testing.T, where string, args []string) {
	t.Helper()
	values := chartValues(t)
	for i, arg := range args {
		if arg != "--set" {
			continue
		}
		path, _, _ := strings.Cut(args[i+1], "=")
		var found any = values
		for key := range strings.SplitSeq(path, ".") {
			level, _ := found.(map[string]any)
			if found = level[key]; found == nil {
				t.Errorf("%s: the chart has no value %s", where, path)
				break
			}
		}
	}
}
