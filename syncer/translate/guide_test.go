package translate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guide is the page of the admins' guide that lists the keys in allowed.
const guide = "docs/admins/labels-and-annotations.md"

// TestGuideListsTheKeys compares the guide with the keys that are synced down by
// default.
func TestGuideListsTheKeys(t *testing.T) {
	page, err := os.ReadFile("../../" + guide)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What is synced by default\n")
	section, _, _ = strings.Cut(section, "\n\nAll other labels")
	listed := map[string][]string{}
	for row := range strings.Lines(section) {
		if cells := strings.Split(row, "|"); len(cells) == 5 && !strings.Contains(row, "---") {
			listed[strings.TrimSpace(cells[1])] = quoted(cells[2] + cells[3])
		}
	}
	delete(listed, "kind")
	delete(listed, "others, and custom resources")
	want := map[string][]string{}
	for kind, keys := range allowed {
		want[kind] = slices.Sorted(slices.Values(slices.Concat(keys.labels, keys.annotations)))
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("the table in %s differs from the keys in syncer/translate/keys.go (-keys +table):\n%s", guide, diff)
	}
}

// quoted returns the keys with a domain that a text quotes.
func quoted(text string) []string {
	var keys []string
	for _, match := range regexp.MustCompile("`([^`]+/[^`]*)`").FindAllStringSubmatch(text, -1) {
		keys = append(keys, match[1])
	}
	slices.Sort(keys)
	return keys
}
