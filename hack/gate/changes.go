package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

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

// contains tells whether HEAD contains a commit, which may be one that this clone
// does not know.
func contains(ctx context.Context, commit string) bool {
	_, err := git(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
	return err == nil
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
