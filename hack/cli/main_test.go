package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/virtualcluster/virtualcluster/cli/command"
)

// TestEveryCommandIsDescribed checks that the reference has a section for each
// command, with its options, and that each flag has a description.
func TestEveryCommandIsDescribed(t *testing.T) {
	text, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range below(command.New(genericiooptions.NewTestIOStreamsDiscard())) {
		if !strings.Contains(text, "\n## "+c.CommandPath()+"\n") {
			t.Errorf("there is no section about %s", c.CommandPath())
		}
		if c.Example == "" && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		checkFlags(t, c)
	}
	if strings.Contains(text, "SEE ALSO") || strings.Contains(text, "Options inherited") {
		t.Error("the reference links to pages that do not exist")
	}
}

func checkFlags(t *testing.T, c *cobra.Command) {
	t.Helper()
	c.InitDefaultHelpFlag()
	for line := range strings.SplitSeq(strings.TrimSpace(c.LocalFlags().FlagUsages()), "\n") {
		if fields := strings.Fields(line); len(fields) < 3 {
			t.Errorf("%s: flag %q has no description", c.CommandPath(), line)
		}
	}
}
