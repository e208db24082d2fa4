package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is a process of this machine, those of a real node included.
type process struct {
	pid, parent int
	name        string
}

// NodePID returns the ID of process 1 of the real node; zero while there is none.
func (s *SuperCluster) NodePID() (int, error) { return childOf(s.PID(), "vc-standalone") }

// NodeProgramPID returns the ID of a program that process 1 of the real node has
// started; zero while there is none.
func (s *SuperCluster) NodeProgramPID(name string) (int, error) {
	node, err := s.NodePID()
	if node == 0 || err != nil {
		return 0, err
	}
	return childOf(node, name)
}

// ContainerPID returns the ID of the process of a name in a pod of the real
// node, by the UID of the pod; zero while there is none.
func ContainerPID(pod, name string) (int, error) {
	all, err := processes()
	i := slices.IndexFunc(all, func(p process) bool {
		if p.name != name {
			return false
		}
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid))
		return err == nil && strings.Contains(string(groups), "pod"+pod)
	})
	if err != nil || i < 0 {
		return 0, err
	}
	return all[i].pid, nil
}

// childOf returns the ID of the process of a name that another one has started;
// zero if there is none.
func childOf(parent int, name string) (int, error) {
	all, err := processes()
	i := slices.IndexFunc(all, func(p process) bool { return p.parent == parent && p.name == name })
	if err != nil || i < 0 {
		return 0, err
	}
	return all[i].pid, nil
}

// processes returns all processes.
func processes() ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		p, err := parseProcess(string(text))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		found = append(found, p)
	}
	return found, nil
}

// parseProcess parses a file stat of /proc. The name is in parentheses, and may
// have some of its own.
func parseProcess(text string) (process, error) {
	start, end := strings.Index(text, "("), strings.LastIndex(text, ")")
	if start < 0 || end < start {
		return process{}, fmt.Errorf("expected a name in parentheses: %q", text)
	}
	p := process{name: text[start+1 : end]}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:start]))
	if err != nil {
		return process{}, err
	}
	p.pid = pid
	var state rune
	_, err = fmt.Sscanf(text[end+1:], " %c %d", &state, &p.parent)
	return p, err
}
