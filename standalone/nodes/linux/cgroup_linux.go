package linux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	cgroups = "/sys/fs/cgroup"
	// cgroupPatience is how long killed processes may stay in their cgroups.
	cgroupPatience = 5 * time.Second
	cgroupPoll     = 20 * time.Millisecond
)

// cgroup is the name of the parent cgroup of the node's pods. It is the only
// object of a node that outlives a kill of this process; the next start removes
// it.
type cgroup string

// make creates the cgroup, after removing one that is left.
func (c cgroup) make(ctx context.Context) error {
	if err := c.remove(ctx); err != nil {
		return err
	}
	hierarchies, err := c.hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if err := os.Mkdir(filepath.Join(hierarchy, string(c)), 0o755); err != nil { //nolint:gosec // the mode of all cgroups
			return fmt.Errorf("create the node's cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the cgroup and its descendants. All processes in them must be
// dead or dying.
func (c cgroup) remove(ctx context.Context) error {
	hierarchies, err := c.hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		root := filepath.Join(hierarchy, string(c))
		last := error(nil)
		err := wait.PollUntilContextTimeout(ctx, cgroupPoll, cgroupPatience, true, func(context.Context) (bool, error) {
			last = removeTree(root)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("remove the node's cgroup %s: %w", root, errors.Join(last, err))
		}
	}
	return nil
}

// removeTree removes directories from the leaves up. It leaves their files to
// the kernel, which owns them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// hierarchies returns the directories of the cgroup: one with cgroup v2, one
// for each controller with v1, and both on hybrid machines.
func (c cgroup) hierarchies() ([]string, error) {
	if magicOf(cgroups) == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroups}, delegate(cgroups)
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	var found []string
	for _, entry := range entries {
		dir := filepath.Join(cgroups, entry.Name())
		if magic := magicOf(dir); entry.IsDir() && (magic == unix.CGROUP_SUPER_MAGIC || magic == unix.CGROUP2_SUPER_MAGIC) {
			found = append(found, dir)
		}
	}
	return found, nil
}

// magicOf returns the magic number of a file system; zero if there is none.
func magicOf(dir string) int64 {
	stat := unix.Statfs_t{}
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0
	}
	return int64(stat.Type) //nolint:unconvert // the type differs between architectures
}

// delegate enables all controllers for the children of a cgroup.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("find cgroup controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err != nil {
			return fmt.Errorf("enable the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}
