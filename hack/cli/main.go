// Cli writes the reference of kubectl vc from its commands.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/virtualcluster/virtualcluster/cli/command"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

//go:embed header.md
var header string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cli:", err)
		os.Exit(1)
	}
}

// run writes the reference to the file in the argument.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the file to write, got %q", args)
	}
	text, err := reference()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o644) //nolint:gosec // a public document
}

// reference returns the document.
func reference() (string, error) {
	root := command.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	root.DisableAutoGenTag = true
	out := bytes.NewBufferString(header)
	for _, m := range exit.Meanings() {
		fmt.Fprintf(out, "| %d | %s |\n", m.Code, m.Meaning)
	}
	out.WriteString("\nThe exit code of `connect` is that of the command that it runs.\n")
	for _, c := range below(root) {
		text, err := section(c)
		if err != nil {
			return "", err
		}
		out.WriteString("\n" + text)
	}
	// The default is below the home directory of the user.
	root.PersistentFlags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache"
	fmt.Fprintf(out, "\n## Options of all commands\n\n```\n%s```\n", root.PersistentFlags().FlagUsages())
	return out.String(), nil
}

// below returns the commands below a command, and those below each of them.
func below(of *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			all = append(append(all, c), below(c)...)
		}
	}
	return all
}

// section returns the section of a command without the options of all commands
// and without links to pages of other commands.
func section(c *cobra.Command) (string, error) {
	c.InitDefaultHelpFlag()
	page := &bytes.Buffer{}
	if err := doc.GenMarkdownCustom(c, page, func(name string) string { return "#" + name }); err != nil {
		return "", fmt.Errorf("describe %s: %w", c.CommandPath(), err)
	}
	text, _, _ := strings.Cut(page.String(), "### Options inherited from parent commands")
	text, _, _ = strings.Cut(text, "### SEE ALSO")
	return strings.TrimSpace(text) + "\n", nil
}
