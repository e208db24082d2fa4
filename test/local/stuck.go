package local

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// module is the prefix of the names of this project's functions.
const module = "github.com/virtualcluster/virtualcluster/"

// maxStacks is how much is read of the stacks of all goroutines, in bytes.
const maxStacks = 16 << 20

// running returns where the goroutines of this project are now: of each, the
// innermost function of the project, without those of the tests.
func running() string {
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	at := map[string]bool{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for line := range strings.Lines(stack) {
			function, ours := strings.CutPrefix(strings.TrimSpace(line), module)
			if ours && !strings.HasPrefix(function, "test/") {
				name, _, _ := strings.Cut(function, "({")
				at[name[:max(strings.LastIndexByte(name, '('), 0)]] = true
				break
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(at)), " ")
}
