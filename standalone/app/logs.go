package app

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// logs is the file that all libraries of the process log to, so that the
// terminal is left to what people want to know.
type logs struct {
	logr.Logger

	file *os.File
	// stderr is the process' standard error as it was.
	stderr *os.File
}

// openLogs opens the log file and turns the process' logs to it, those included
// that go straight to standard error. It is undone by close.
func openLogs(path string, verbosity int) (*logs, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	stderr, err := redirect(os.Stderr, file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("send standard error to %s: %w", path, err), file.Close())
	}
	l := &logs{file: file, stderr: stderr}
	l.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(verbosity)))
	klog.SetLogger(l.Logger)
	klog.OsExit = hosted.ContainExit(exitWithHint(path, stderr, klog.OsExit))
	ctrl.SetLogger(l.Logger)
	log.SetOutput(file)
	// A crash belongs on the terminal too.
	return l, debug.SetCrashOutput(stderr, debug.CrashOptions{})
}

// close restores standard error. Libraries that still log write to nowhere.
func (l *logs) close() error {
	klog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	return errors.Join(
		debug.SetCrashOutput(nil, debug.CrashOptions{}),
		unix.Dup2(int(l.stderr.Fd()), int(os.Stderr.Fd())),
		l.stderr.Close(),
		l.file.Close(),
	)
}

// redirect sends what is written to a file into another one, and returns the
// file as it was.
func redirect(from, to *os.File) (was *os.File, err error) {
	fd, err := unix.FcntlInt(from.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	was = os.NewFile(uintptr(fd), from.Name())
	if err := unix.Dup2(int(to.Fd()), int(from.Fd())); err != nil {
		return nil, errors.Join(err, was.Close())
	}
	return was, nil
}

// exitWithHint is for parts of Kubernetes that end the process on their own
// account: the terminal should tell.
func exitWithHint(path string, terminal io.Writer, exit func(int)) func(int) {
	return func(int) {
		_, _ = fmt.Fprintf(terminal, "%s: a part of Kubernetes gave up; see %s\n", name, path)
		exit(1)
	}
}

// oneLine formats an error for a terminal.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
