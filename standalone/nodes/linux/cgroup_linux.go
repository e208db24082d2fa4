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
	// cgroupPatience is how long processes that were killed may stay in their cgroups.
	cgroupPatience = 5 * time.Second
	cgroupPoll     = 20 * time.Millisecond
)

// cgroup is the cgroup below which all pods of the node are, by its name. Of all that a node makes, it alone stays behind when this
// process is killed; the next one removes it.
type cgroup string

// make makes the cgroup, and removes what is left of it first.
func (c cgroup) make(ctx context.Context) error {
	if err := c.remove(ctx); err != nil {
		return err
	}
	hierarchies, err := c.hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if err := os.Mkdir(filepath.Join(hierarchy, string(c)), 0o755); err != nil { //nolint:gosec // as all cgroups are
			return fmt.Errorf("make the node's cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the cgroup and those below it. Nothing must run in them but what is ending.
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

// removeTree removes directories from the leaves up. The files in them are the kernel's and go with them.
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

// hierarchies are where the cgroup has a directory: one place with cgroup v2, one for each controller with v1, and
// both on machines that have both.
func (c cgroup) hierarchies() ([]string, error) {
	if magicOf(cgroups) == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroups}, delegate(cgroups)
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return nil, fmt.Errorf("look for cgroups: %w", err)
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

// magicOf tells the kind of a file system; zero if there is none.
func magicOf(dir string) int64 {
	stat := unix.Statfs_t{}
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0
	}
	return int64(stat.Type) //nolint:unconvert // not on every architecture
}

// delegate turns on all controllers for the cgroups below a cgroup.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("look for cgroup controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err != nil {
			return fmt.Errorf("turn on the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}
