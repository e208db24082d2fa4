package documents

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// separator is between the words of a recorded command line.
const separator = "\x1f"

// recorder is the beginning of a script whose programs are recorded instead of
// started, with the arguments that the shell has split and expanded: it finds no
// program, and calls this function. A line is a command line, written at once,
// since the parts of a pipe run at the same time.
const recorder = `
exec 3>&1 >/dev/null
PATH=/nowhere DIR=DIR TOKEN=TOKEN SYNCER=SYNCER
command_not_found_handle() { local IFS=$'\x1f'; local line="$*"; printf '%s\n' "${line//$'\n'/ }" >&3; }
cd() { :; }
`

// written matches a redirection to a file.
var written = regexp.MustCompile(`(\s)>{1,2} *[^\s&|;)]+`)

// Commands returns the command lines of a block of sh, without running them, and
// without writing files. Programs that are named by a path are left out.
func (b Block) Commands(ctx context.Context) ([][]string, error) {
	// A program that is named by a path fails, and a syntax error ends the shell before the last line.
	out, err := exec.CommandContext(ctx, "bash", "-u", "-c", recorder+written.ReplaceAllString(b.Text, "$1>/dev/null")+"\ntrue").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: parse its commands: %w", b, err)
	}
	var all [][]string
	for line := range strings.Lines(string(out)) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), separator))
	}
	return all, nil
}
