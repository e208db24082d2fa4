package hosted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// attempts counts the starts of a control plane that did not make it ready. The
// count survives the process, which such a start may crash.
type attempts struct{ file string }

func attemptsIn(dir string) attempts { return attempts{filepath.Join(dir, "failed-starts")} }

// count returns the number so far. A file that is not a number counts as one.
func (a attempts) count() int {
	data, err := readFile(a.file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || number < 1 {
		return 1
	}
	return number
}

// begin counts a start as failed until forget is called.
func (a attempts) begin() error {
	return writeFile(a.file, []byte(strconv.Itoa(a.count()+1)))
}

// forget resets the count, after a start that has succeeded or was stopped.
func (a attempts) forget() error {
	if err := os.Remove(a.file); !errors.Is(err, fs.ErrNotExist) {
		return wrapf(err, "remove %s", a.file)
	}
	return nil
}
