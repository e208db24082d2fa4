package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

const (
	// mostAgain is how many containers have a second attempt: if more fail, that is
	// no accident.
	mostAgain = 3
	// slowest is how many containers are listed by their time.
	slowest = 10
	// maxReason is how much of a failure's message is repeated, in characters.
	maxReason = 300
	// attackLabel is that of the attacks in test/escapes.
	attackLabel = "attack"
)

// errMany is why many failed containers have no second attempt.
var errMany = fmt.Errorf("failed, as did more than %d, which have no second attempt", mostAgain)

// container is one of a suite's top-level nodes: a container of specs, or a spec
// outside of any.
type container struct {
	// file and line are where it is in the suite's folder.
	file string
	line int
	text string
	took time.Duration
	// failure tells which of its specs failed and why. It is empty if none did.
	failure string
	// attack tells that the failed spec is an attack.
	attack bool
}

func (c *container) String() string { return fmt.Sprintf("%s:%d %q", c.file, c.line, c.text) }

// readReport returns Ginkgo's report on one suite.
func readReport(file string) (types.Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return types.Report{}, err
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return types.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(reports) != 1 {
		return types.Report{}, fmt.Errorf("%s has reports on %d suites, expected one", file, len(reports))
	}
	return reports[0], nil
}

// containers returns the top-level nodes of a report of which specs ran, the
// slowest first.
func containers(report types.Report) []*container {
	var all []*container
	known := map[string]*container{}
	for _, spec := range report.SpecReports {
		if spec.LeafNodeType != types.NodeTypeIt || spec.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
			continue
		}
		at, text := spec.LeafNodeLocation, spec.LeafNodeText
		if len(spec.ContainerHierarchyTexts) > 0 {
			at, text = spec.ContainerHierarchyLocations[0], spec.ContainerHierarchyTexts[0]
		}
		key := fmt.Sprint(at.FileName, at.LineNumber, text)
		c := known[key]
		if c == nil {
			c = &container{file: path.Base(at.FileName), line: at.LineNumber, text: text}
			known[key] = c
			all = append(all, c)
		}
		c.took += spec.RunTime
		if c.failure == "" && spec.Failed() {
			c.failure, c.attack = reason(spec), slices.Contains(spec.Labels(), attackLabel)
		}
	}
	slices.SortStableFunc(all, func(a, b *container) int { return cmp.Compare(b.took, a.took) })
	return all
}

// reason says in one line which spec failed, where and why.
func reason(spec types.SpecReport) string {
	at := spec.FailureLocation()
	message := []rune(strings.Join(strings.Fields(spec.FailureMessage()), " "))
	if len(message) > maxReason {
		message = append(message[:maxReason], '…')
	}
	return fmt.Sprintf("%s [%s] at %s:%d: %s", spec.LeafNodeText, spec.State, path.Base(at.FileName), at.LineNumber, string(message))
}

// again returns the containers of a failed run, the slowest first, and in err why
// they have no second attempt.
func again(report types.Report) ([]*container, error) {
	if reasons := report.SpecialSuiteFailureReasons; len(reasons) > 0 {
		return nil, errors.New(strings.Join(reasons, ", "))
	}
	var outside []string
	for _, spec := range report.SpecReports {
		if spec.LeafNodeType != types.NodeTypeIt && spec.Failed() {
			outside = append(outside, fmt.Sprintf("%s %s", spec.LeafNodeType, reason(spec)))
		}
	}
	if len(outside) > 0 {
		return nil, errors.New(strings.Join(outside, "; "))
	}
	failed := slices.DeleteFunc(containers(report), func(c *container) bool { return c.failure == "" })
	switch {
	case len(failed) == 0:
		return nil, errors.New("the suite failed, and none of its specs did: a process died, or ended before its specs")
	case len(failed) > mostAgain:
		return failed, errMany
	}
	return failed, nil
}
