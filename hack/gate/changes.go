package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxGreen is how many green commits are looked at, from the last one.
const maxGreen = 100

// record is a file with the commits at which all was green on this machine, the
// last one at its end: a line has a commit and the version of Go. Nothing that a
// clone knows tells which commit has passed.
type record string

// newRecord returns that of this user.
func newRecord() (record, error) {
	folder, err := os.UserCacheDir()
	return record(filepath.Join(folder, "virtualcluster-gate", "green")), err
}

// commits returns the commits that were green with this version of Go, the last
// one first.
func (r record) commits() ([]string, error) {
	data, err := os.ReadFile(string(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var commits []string
	for line := range strings.Lines(string(data)) {
		if commit, version, _ := strings.Cut(strings.TrimSpace(line), " "); version == runtime.Version() {
			commits = append(commits, commit)
		}
	}
	slices.Reverse(commits)
	return commits[:min(maxGreen, len(commits))], err
}

// add adds a commit that is green.
func (r record) add(commit string) (err error) {
	if err := os.MkdirAll(filepath.Dir(string(r)), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(string(r), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s\n", commit, runtime.Version())
	return errors.Join(err, file.Close())
}

// base returns the last commit of a record that HEAD contains. It is empty if
// there is none.
func base(ctx context.Context, r record) (string, error) {
	commits, err := r.commits()
	for _, commit := range commits {
		if _, err := git(ctx, "merge-base", "--is-ancestor", commit, "HEAD"); err == nil {
			return commit, nil
		}
	}
	return "", err
}

// changes returns the files that have changed since a commit, also those that are
// not committed.
func changes(ctx context.Context, since string) ([]string, error) {
	// Without renames, so that the old name counts as well.
	changed, err := git(ctx, "diff", "--name-only", "--no-renames", "-z", since)
	if err != nil {
		return nil, err
	}
	added, err := git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	return strings.FieldsFunc(changed+added, func(r rune) bool { return r == 0 }), err
}

// committed tells whether the work tree is that of HEAD.
func committed(ctx context.Context) (bool, error) {
	status, err := git(ctx, "status", "--porcelain")
	return status == "", err
}

// git runs git and returns what it writes.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the arguments are the program's, and commits
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// choice returns what a run leaves out since the last commit that was green.
func choice(ctx context.Context, r record) (selection, error) {
	since, err := base(ctx, r)
	if err != nil || since == "" {
		return selection{}, err
	}
	changed, err := changes(ctx, since)
	if err != nil {
		return selection{}, err
	}
	const short = 8
	return selection{
		leftOut: choose(areas(), changed),
		why:     fmt.Sprintf("nothing it depends on has changed since %.*s, which was green here", short, since),
	}, nil
}
