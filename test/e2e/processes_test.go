package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// process is one of this machine, the node's included.
type process struct {
	pid, parent int
	name        string
}

// processes are all.
func processes() []process {
	GinkgoHelper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	Expect(err).NotTo(HaveOccurred())
	var found []process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses, and may have some of its own.
		head, tail, _ := strings.Cut(string(text), "(")
		end := strings.LastIndex(tail, ")")
		p := process{name: tail[:end]}
		_, err = fmt.Sscanf(tail[end+1:], " %c %d", new(rune), &p.parent)
		Expect(err).NotTo(HaveOccurred())
		p.pid, err = strconv.Atoi(strings.TrimSpace(head))
		Expect(err).NotTo(HaveOccurred())
		found = append(found, p)
	}
	return found
}

// childOf is the process of a name that another one has started, zero if there is none.
func childOf(parent int, name string) int {
	GinkgoHelper()
	all := processes()
	i := slices.IndexFunc(all, func(p process) bool { return p.parent == parent && p.name == name })
	if i < 0 {
		return 0
	}
	return all[i].pid
}

// node is process 1 of the node, and program one that it has started; zero
// while there is none.
func node() int { return childOf(super.PID(), "vc-standalone") }

func program(name string) func() int {
	return func() int {
		if one := node(); one != 0 {
			return childOf(one, name)
		}
		return 0
	}
}

// kill ends a process at once, and waits until another one has taken its place.
func kill(find func() int) {
	GinkgoHelper()
	old := find()
	Expect(old).NotTo(BeZero())
	Expect(syscall.Kill(old, syscall.SIGKILL)).To(Succeed())
	Eventually(find).ShouldNot(Or(BeZero(), Equal(old)))
}
