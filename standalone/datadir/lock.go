package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// maxPID is more than a process number has digits.
const maxPID = 32

// takeLock locks the file for as long as this process lives or the file is
// open, and writes into it who we are.
func takeLock(path, dir string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be used: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%s is in use by another vc-standalone%s", dir, holder(file))
	} else if err == nil {
		err = writeHolder(file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// holder names the process that has the lock, if that is known.
func holder(file io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(file, maxPID))
	pid, parseErr := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || parseErr != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

func writeHolder(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", file.Name(), err)
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return fmt.Errorf("write %s: %w", file.Name(), err)
	}
	return nil
}
