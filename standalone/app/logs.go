package app

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// openLog opens a log file and has all libraries of the process log to it, so that the terminal is left to what people want
// to know.
func openLog(path string, verbosity int) (logr.Logger, *os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return logr.Discard(), nil, fmt.Errorf("open log: %w", err)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(verbosity)))
	klog.SetLogger(logger)
	klog.OsExit = exitWithHint(path, os.Stderr, os.Exit)
	ctrl.SetLogger(logger)
	log.SetOutput(file)
	return logger, file, nil
}

// exitWithHint is for parts of Kubernetes that end the process on their own account: the terminal should tell.
func exitWithHint(path string, terminal io.Writer, exit func(int)) func(int) {
	return func(int) {
		_, _ = fmt.Fprintf(terminal, "%s: a part of Kubernetes gave up; %s tells why\n", name, path)
		exit(1)
	}
}

// oneLine is an error as it is told on a terminal.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
