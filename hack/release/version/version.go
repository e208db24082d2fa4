// Package version describes what is released: version, commit and time.
package version

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Source is the project's repository.
const Source = "https://github.com/virtualcluster/virtualcluster"

// Release is what is released.
type Release struct {
	// Version is the tag, such as v0.1.0.
	Version string
	// Revision is the commit.
	Revision string
	// Time is that of all that is published.
	Time time.Time
}

// Describe returns the release of the commit that is checked out in a folder.
// Its time is the commit's, or that of the variable SOURCE_DATE_EPOCH.
func Describe(ctx context.Context, dir, version string) (Release, error) {
	out, err := git(ctx, dir, "show", "--no-patch", "--no-show-signature", "--format=%H %ct", "HEAD")
	if err != nil {
		return Release{}, err
	}
	revision, seconds, _ := strings.Cut(out, " ")
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Release{}, fmt.Errorf("read the time of the release: %w; SOURCE_DATE_EPOCH is in seconds since 1970", err)
	}
	return Release{Version: version, Revision: revision, Time: time.Unix(unix, 0).UTC()}, nil
}

// Validate returns an error for a version that cannot be released.
func Validate(version string) error {
	switch {
	case !semver.IsValid(version):
		return fmt.Errorf("release version %q: expected a semantic version with v, such as v0.1.0 or v0.1.0-rc.1", version)
	case semver.Build(version) != "":
		return fmt.Errorf("release version %q: build metadata cannot be in the tag of an image; leave %s out", version, semver.Build(version))
	case semver.Canonical(version) != version:
		return fmt.Errorf("release version %q: write it in full, as %s", version, semver.Canonical(version))
	}
	return nil
}

// Clean returns an error if the tree has changes that are not committed.
func Clean(ctx context.Context, dir string) error {
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return errors.New("release the tree: it has changes that are not committed; commit or remove them:\n" + changed)
	}
	return nil
}

// git returns the output of a command of git in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are constants
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
