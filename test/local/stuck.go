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
	return innermost(string(stacks[:runtime.Stack(stacks, true)]))
}

// innermost returns the innermost function of the project in each stack, once.
func innermost(stacks string) string {
	at := map[string]bool{}
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		for line := range strings.Lines(stack) {
			call, ours := strings.CutPrefix(line, module)
			if arguments := strings.LastIndexByte(call, '('); ours && arguments > 0 && !strings.HasPrefix(call, "test/") {
				at[call[:arguments]] = true
				break
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(at)), " ")
}
