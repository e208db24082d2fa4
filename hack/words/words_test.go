package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// found returns the phrases in paragraphs, with their lines.
func found(t *testing.T, paragraphs []paragraph) map[int]string {
	t.Helper()
	phrases, err := parse("carr(y|ies|ied) => sync\n# a comment\n\nbut for=>except\n^What [^?]*[.:] => the subject")
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]string{}
	for _, m := range matches(phrases, paragraphs) {
		got[m.line] += m.text + "=>" + m.instead + ";"
	}
	return got
}

func TestMarkdown(t *testing.T) {
	source := strings.Join([]string{
		"# What is carried is a heading",
		"The syncer Carries objects, but",
		"for events. What is left stays.",
		"",
		"`carried` is code, and [so](carried.md) is a target.",
		"```",
		"carried",
		"```",
		"What is it?",
		"",
		"| carried | but for |",
		"- an item is carried",
		"- What it does is this.",
	}, "\n")
	want := map[int]string{
		2:  "Carries=>sync;but for=>except;",
		3:  "What is left stays.=>the subject;",
		11: "carried=>sync;but for=>except;",
		12: "carried=>sync;",
		13: "What it does is this.=>the subject;",
	}
	if diff := cmp.Diff(want, found(t, markdown(source))); diff != "" {
		t.Error(diff)
	}
}

func TestComments(t *testing.T) {
	source := strings.Join([]string{
		"// Package carried says but",
		"// for what.",
		"package carried",
		"",
		"//go:embed carried",
		"// +carried",
		"var carried = \"carried\" // What is left stays.",
		"const message = \"what is carried\"",
	}, "\n")
	want := map[int]string{
		1: "carried=>sync;but for=>except;",
		7: "What is left stays.=>the subject;",
		8: "carried=>sync;",
	}
	if diff := cmp.Diff(want, found(t, comments([]byte(source)))); diff != "" {
		t.Error(diff)
	}
}

func TestParse(t *testing.T) {
	for _, wrong := range []string{"no arrow", "( => a group that does not end"} {
		if _, err := parse(wrong); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if phrases, err := parse(list); err != nil || len(phrases) == 0 {
		t.Errorf("%d phrases, %v", len(phrases), err)
	}
}

func TestRun(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"pages/a.md": file("Nobody\n"), "pages/b.go": file("package b // fine\n"), "pages/c.txt": file("nobody"),
		"pages/zz_generated.go": file("// nobody\n"),
	}
	got, err := run(tree, []string{"pages"})
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], `pages/a.md:1: "Nobody": write `) {
		t.Errorf("%q found, error %v", got, err)
	}
	if _, err := run(tree, []string{"nowhere"}); err == nil {
		t.Error("a folder that does not exist is not an error")
	}
}
