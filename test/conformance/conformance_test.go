package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

func specReport(name string, state types.SpecState) types.SpecReport {
	return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: state}
}

// kept are results in a directory of a test's.
func kept(t *testing.T, batches ...[]types.SpecReport) *results {
	t.Helper()
	r, err := openResults(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches {
		if err := r.keep(types.Report{SpecReports: batch}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func listed(specs []spec) string {
	var all []string
	for _, s := range specs {
		all = append(all, s.name)
	}
	return strings.Join(all, " ")
}

func TestSpecsThatRunAloneComeLast(t *testing.T) {
	got := batches([]spec{{name: "a", serial: true}, {name: "b"}, {name: "c"}, {name: "d", serial: true}, {name: "e"}}, 2, 2)
	var all []string
	for _, batch := range got {
		all = append(all, listed(batch))
	}
	if want := "b c|e|a|d"; strings.Join(all, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(all, "|"), want)
	}
}

func TestARunGoesOnWhereItWas(t *testing.T) {
	specs := []spec{{name: "a"}, {name: "b"}, {name: "c"}}
	first := kept(t,
		[]types.SpecReport{specReport("a", types.SpecStateFailed), specReport("b", types.SpecStateFailed)},
		[]types.SpecReport{specReport("a", types.SpecStatePassed)})
	again, err := openResults(first.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(again.missing(specs, false)); got != "c" {
		t.Errorf("to run are %q, want c", got)
	}
	if got := listed(again.missing(specs, true)); got != "b c" {
		t.Errorf("with those that failed, to run are %q, want b c", got)
	}
}

func TestBrokenResultsAreSaid(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "000.json"), []byte(`{"SuitePath": "half a fi`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openResults(dir); err == nil || !strings.Contains(err.Error(), "000.json") {
		t.Errorf("got %v, and the file should be named", err)
	}
}

func TestWhatDidNotEndIsNoResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	const said = `[{"SpecReports": [
		{"LeafNodeType": "It", "LeafNodeText": "passed", "State": "passed"},
		{"LeafNodeType": "It", "LeafNodeText": "failed", "State": "failed"},
		{"LeafNodeType": "It", "LeafNodeText": "interrupted", "State": "interrupted"},
		{"LeafNodeType": "It", "LeafNodeText": "skipped", "State": "skipped"},
		{"LeafNodeType": "BeforeSuite", "State": "failed"}]}]`
	if err := os.WriteFile(file, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.SpecReports) != 2 || report.SpecReports[0].LeafNodeText != "passed" || report.SpecReports[1].LeafNodeText != "failed" {
		t.Errorf("got %v, want passed and failed", report.SpecReports)
	}
}

func TestCompare(t *testing.T) {
	specs := []spec{{name: "fine"}, {name: "known"}, {name: "new"}, {name: "node"}, {name: "odd"}, {name: "not run"}}
	onDirect := kept(t, []types.SpecReport{
		specReport("fine", types.SpecStatePassed), specReport("known", types.SpecStatePassed), specReport("new", types.SpecStatePassed),
		specReport("node", types.SpecStateFailed), specReport("odd", types.SpecStateFailed),
	})
	onTenant := kept(t, []types.SpecReport{
		specReport("fine", types.SpecStatePassed), specReport("known", types.SpecStateFailed), specReport("new", types.SpecStateTimedout),
		specReport("node", types.SpecStateFailed), specReport("odd", types.SpecStatePassed),
	})
	byDefault := kept(t, []types.SpecReport{
		specReport("fine", types.SpecStateFailed), specReport("known", types.SpecStateFailed), specReport("odd", types.SpecStateFailed),
		specReport("node", types.SpecStatePassed),
	})
	alone := kept(t, []types.SpecReport{
		specReport("fine", types.SpecStateFailed), specReport("known", types.SpecStateFailed), specReport("not run", types.SpecStateFailed),
		specReport("odd", types.SpecStatePassed),
	})
	sides := map[string]*results{direct: onDirect, shared: onTenant, dedicated: alone, defaultPolicy: byDefault, converted: kept(t)}
	got := compare(specs, sides, reasons{
		Tenant: []reason{{[]string{"other", "known", "not run"}, "because"}, {[]string{"ne"}, "a part of a name is no name"}},
		Both:   []reason{{[]string{"node"}, "one"}},
		Others: map[string][]reason{dedicated: {{[]string{"fine"}, "alone"}}, defaultPolicy: {{[]string{"fine"}, "refused"}}},
	})

	for side, want := range map[string]tally{
		direct: {Ran: 5, Passed: 3}, shared: {Ran: 5, Passed: 2}, dedicated: {Ran: 4, Passed: 1}, defaultPolicy: {Ran: 4, Passed: 1}, converted: {},
	} {
		if got.Tallies[side] != want {
			t.Errorf("%s: got %+v, want %+v", side, got.Tallies[side], want)
		}
	}
	unexplained := got.err()
	for name, named := range map[string]bool{"new": true, "odd": true, "known": false, "fine": false} {
		if strings.Contains(fmt.Sprint(unexplained), ": "+name) != named {
			t.Errorf("got %v, which should name the specs without a reason, and %s is named: %t", unexplained, name, !named)
		}
	}
	for table, want := range map[string]string{
		table(got.OnlyTenant): "| known | because |\n| new |  |", table(got.OnlyDirect): "| odd |  |", table(got.Both): "| node | one |",
		table(got.OnlyOther[dedicated]):     "| fine | alone |\n| not run | because |",
		table(got.OnlyOther[defaultPolicy]): "| fine | refused |\n| odd |  |",
	} {
		if !strings.HasSuffix(table, want) {
			t.Errorf("got\n%s\nwant at its end\n%s", table, want)
		}
	}
}

func TestOneSideAlone(t *testing.T) {
	got := compare([]spec{{name: "a"}, {name: "b"}}, map[string]*results{
		direct: kept(t), dedicated: kept(t), defaultPolicy: kept(t), converted: kept(t),
		shared: kept(t, []types.SpecReport{specReport("a", types.SpecStateFailed), specReport("b", types.SpecStatePassed)}),
	}, reasons{})
	if got.Tallies[direct].Ran != 0 || got.Tallies[shared].Passed != 1 || len(got.OnlyTenant) != 1 || len(got.OnlyOther) != 0 {
		t.Errorf("got %+v, want one that fails through the tenant", got)
	}
}

// TestReasonsAreGiven: each reason is for specs that are named in full, and
// that the document shows to fail.
func TestReasonsAreGiven(t *testing.T) {
	given, err := readReasons()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for side := range given.Others {
		if !slices.Contains(otherTenants(), side) {
			t.Errorf("there is no side %q", side)
		}
	}
	for _, r := range slices.Concat(append(slices.Collect(maps.Values(given.Others)), given.Tenant, given.Both)...) {
		if r.Reason == "" || len(r.Specs) == 0 {
			t.Errorf("%+v says too little", r)
		}
		for _, name := range r.Specs {
			if !strings.HasSuffix(name, "[Conformance]") || !bytes.Contains(document, []byte("\n| "+name+" | ")) {
				t.Errorf("docs/conformance.md has no spec %q", name)
			}
		}
	}
}

func TestDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "conformance.md")
	c := comparison{Specs: 3, Tallies: map[string]tally{shared: {Ran: 2}}, OnlyTenant: []failure{{"a | b", "because"}}}
	if err := c.write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`| a \| b | because |`, "| through a tenant, Shared | 0 | 2 | 3 |", "None."} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the document does not say %q", want)
		}
	}
}
