package escapes

import (
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

const (
	// documentVariable names the file whose table of attacks a run rewrites.
	// make generate sets it on a dry run.
	documentVariable = "ATTACKS_DOCUMENT"

	tableBegin = "<!-- attacks: make generate writes this table -->"
	tableEnd   = "<!-- attacks end -->"

	attackLabel = "attack"
)

// sources are the sources of the attacks by their text. The tree of specs is
// built once, before any spec runs.
var sources = map[string]string{}

// attack declares one attempt of a hostile tenant. The text says what is
// attempted; no two attacks have the same. The source is where the idea is
// from: a CVE, a peer's issue or behaviour, a document, a review, or an idea of
// our own. The body passes if the attempt is refused.
func attack(text, source string, body func(ctx SpecContext), decorators ...any) {
	GinkgoHelper()
	Expect(sources).NotTo(HaveKey(text), "an attack of this text exists")
	sources[text] = source
	It(text, append([]any{Label(attackLabel), body}, decorators...)...)
}

// attacks are the specs of a report that are attacks.
func attacks(report Report) types.SpecReports {
	return slices.DeleteFunc(slices.Clone(report.SpecReports), func(spec SpecReport) bool {
		return !slices.Contains(spec.Labels(), attackLabel)
	})
}

var _ = ReportAfterSuite("attacks", func(report Report) {
	all := attacks(report)
	if file := os.Getenv(documentVariable); file != "" {
		Expect(writeTable(file, all)).To(Succeed())
		return
	}
	ran := all.WithState(types.SpecStatePassed | types.SpecStateFailureStates)
	refused := all.WithState(types.SpecStatePassed)
	fmt.Printf("\nattacks: %d tried, %d refused, %d let through\n", len(ran), len(refused), len(ran)-len(refused))
})

// writeTable rewrites the table of attacks between its two marks in a document.
func writeTable(file string, all types.SpecReports) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(data), tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		return fmt.Errorf("write the table of attacks: %s does not have the marks %q and %q", file, tableBegin, tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n"+table(all)+tableEnd+after), 0o644)
}

// table is the table of attacks in Markdown, sorted by the area that is attacked.
func table(all types.SpecReports) string {
	rows := make([]string, 0, len(all))
	for _, spec := range all {
		area := strings.Join(spec.ContainerHierarchyTexts, ", ")
		file := spec.LeafNodeLocation.FileName
		file = file[strings.LastIndex(file, "/")+1:]
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", area, spec.LeafNodeText, sources[spec.LeafNodeText], file))
	}
	slices.Sort(rows)
	return "\n| area | attack | source | test in `test/escapes` |\n|---|---|---|---|\n" + strings.Join(rows, "") + "\n"
}
