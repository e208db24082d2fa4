package app

import (
	"bytes"
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/egress"

	"github.com/virtualcluster/virtualcluster/standalone/datadir"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/simulated"
)

// inDirectory are options for a directory of the test's own, at free ports.
func inDirectory(t *testing.T) Options {
	t.Helper()
	opts := DefaultOptions()
	opts.DataDir, opts.Port, opts.Nodes, opts.UnsafeNoFsync = filepath.Join(t.TempDir(), "data"), 0, Nodes{}, true
	return opts
}

// never fails the test when an instance that cannot start is used.
func never(t *testing.T) func(context.Context, *Instance) error {
	t.Helper()
	return func(context.Context, *Instance) error {
		t.Error("it was started")
		return nil
	}
}

// checkReleased fails the test if a run has left something behind in the
// process: the lock of its directory, or its hand on standard error.
func checkReleased(t *testing.T, opts Options, stderr unix.Stat_t) {
	t.Helper()
	if dir, err := datadir.Open(opts.DataDir, ""); err != nil {
		t.Error(err)
	} else if err := dir.Close(); err != nil {
		t.Error(err)
	}
	if now := statStderr(t); now.Ino != stderr.Ino || now.Dev != stderr.Dev {
		t.Error("standard error is another file than before")
	}
}

func statStderr(t *testing.T) unix.Stat_t {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(syscall.Stderr, &stat); err != nil {
		t.Fatal(err)
	}
	return stat
}

// TestRunRefuses: what keeps an instance from starting is said before anything
// is there, and everything that was opened by then is closed.
func TestRunRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, c := range map[string]struct {
		change func(*testing.T, *Options)
		want   string
	}{
		"no log": {func(t *testing.T, o *Options) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(o.DataDir, logFile), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "open log: "},
		"a port in use":             {func(_ *testing.T, o *Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, "is taken"},
		"a node that was not built": {func(_ *testing.T, o *Options) { o.Nodes = Nodes{Real: true} }, "a real node cannot run here: "},
		"a directory that is used": {func(t *testing.T, o *Options) {
			t.Helper()
			dir, err := datadir.Open(o.DataDir, "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dir.Close() })
			other := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(o.DataDir, other); err != nil {
				t.Fatal(err)
			}
			o.DataDir = other
		}, "is in use by another vc-standalone"},
	} {
		t.Run(name, func(t *testing.T) {
			opts, stderr := inDirectory(t), statStderr(t)
			c.change(t, &opts)
			contains(t, Run(t.Context(), opts, &bytes.Buffer{}, never(t)), c.want)
			if name != "a directory that is used" {
				checkReleased(t, opts, stderr)
			}
		})
	}
}

// freePort returns a port that is free now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().(*net.TCPAddr).Port
}

// output is written to by a start, and says when a step is done.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	on   string
	do   func()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if strings.Contains(string(p), o.on) {
		o.do()
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestRunFailsHalfWay tests that an instance of which a part cannot start, or
// that is stopped meanwhile, stops the running parts, and can be started again.
func TestRunFailsHalfWay(t *testing.T) {
	skipWithRaceDetector(t)
	opts, stderr := inDirectory(t), statStderr(t)
	opts.AgentPort = freePort(t)
	registry := prometheus.NewRegistry()
	if err := egress.RegisterMetrics(registry); err != nil {
		t.Fatal(err)
	}
	opts.SyncerOptions.Registerer = registry // there is no room for the same metrics again
	out := &output{on: "nodes", do: func() {}}
	contains(t, Run(t.Context(), opts, out, never(t)), "duplicate metrics")
	if listener, err := net.Listen("tcp", net.JoinHostPort(opts.Listen, strconv.Itoa(opts.AgentPort))); err != nil {
		t.Errorf("the port of vn-agent is still in use: %v", err)
	} else if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if want := `(?s)super cluster .* tenancy API .* nodes .* stopped +everything\n$`; !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("it said %s", out)
	}
	checkReleased(t, opts, stderr)

	ctx, cancel := context.WithCancel(t.Context())
	out = &output{on: "super cluster", do: cancel}
	if err := Run(ctx, opts, out, never(t)); err != nil {
		t.Errorf("told to stop while it starts: %v", err)
	}
	if text := out.String(); !strings.Contains(text, "stopped") || strings.Contains(text, "ready") {
		t.Errorf("it said %s", text)
	}
	checkReleased(t, opts, stderr)
}

// TestDemoIsInterrupted: its directory is kept, and named, if it did not come
// to its end.
func TestDemoIsInterrupted(t *testing.T) {
	skipWithRaceDetector(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := runDemo(ctx, &bytes.Buffer{})
	contains(t, err, "demo failed: interrupted (log: ")
	kept := regexp.MustCompile(`\(log: (.*)\)$`).FindStringSubmatch(err.Error())
	if _, err := os.Stat(kept[1]); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	contains(t, runDemo(t.Context(), &bytes.Buffer{}), "none: no such file or directory")
}

// TestLogs: what any library writes to the process' logs or to standard error
// is in the log file until it is closed.
func TestLogs(t *testing.T) {
	exit := klog.OsExit
	defer func() { klog.OsExit = exit }()
	before := statStderr(t)
	path := filepath.Join(t.TempDir(), "log")
	for range 2 { // the second time, it is appended to
		logs, err := openLogs(path, 3)
		if err != nil {
			t.Fatal(err)
		}
		klog.InfoS("of klog")
		logs.V(3).Info("of a part")
		logs.V(4).Info("too much")
		log.Print("of log")
		_, _ = os.Stderr.WriteString("of standard error\n")
		if err := logs.close(); err != nil {
			t.Fatal(err)
		}
		klog.InfoS("too late")
		log.Print("too late")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]int{"of klog": 2, "of a part": 2, "of log": 2, "of standard error": 2, "too": 0} {
		if got := bytes.Count(text, []byte(part)); got != want {
			t.Errorf("%q is in the log %d times, want %d:\n%s", part, got, want, text)
		}
	}
	if after := statStderr(t); after.Ino != before.Ino {
		t.Error("standard error was not restored")
	}
}

// TestCommands: each says what it does, takes no arguments, and hides nothing
// but what runs inside of a node.
func TestCommands(t *testing.T) {
	command := NewCommand()
	for _, name := range []string{"up", "run", "demo", nodeCommand} {
		sub, _, err := command.Find([]string{name})
		if err != nil || sub.Name() != name {
			t.Fatalf("there is no command %s: %v", name, err)
		}
		if sub.Short == "" || sub.Hidden != (name == nodeCommand) {
			t.Errorf("%s is hidden: %t; it says %q", name, sub.Hidden, sub.Short)
		}
		contains(t, executed(t, name, "surplus"), `"surplus"`)
	}
	contains(t, executed(t, "up"), "--data-dir is missing: name a directory")
	contains(t, executed(t, "up", "--nodes=many"), `invalid argument "many" for "--nodes" flag: it must be 0 to 65534, or real`)
	contains(t, executed(t, "run", "--listen=here"), `--listen is "here": it must be an IP address`)
	contains(t, executed(t, nodeCommand), "read the node's settings: EOF") // the input of tests is empty
	run, _, err := command.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"data-dir": defaultDataDir, "port": "the last one, or a free one", "nodes": "3"} {
		if got := run.Flags().Lookup(flag).DefValue; got != want {
			t.Errorf("--%s has the default %q, want %q", flag, got, want)
		}
	}
}

func executed(t *testing.T, args ...string) error {
	t.Helper()
	command := NewCommand()
	command.SetArgs(args)
	command.SetOut(&bytes.Buffer{})
	return command.ExecuteContext(t.Context())
}

// TestRememberPort: the port is in the directory, and an address that has none
// is an error.
func TestRememberPort(t *testing.T) {
	s := &standalone{opts: Options{Port: unsetPort}, dir: openDir(t)}
	for address, want := range map[string]string{
		"127.0.0.1": "address of the host: ", "127.0.0.1:https": "port of the host: ", "127.0.0.1:4711": "", "[::1]:4711": "",
	} {
		contains(t, s.rememberPort(address), want)
	}
	if port := s.opts.choosePort(s.dir.Port()); port != 4711 {
		t.Errorf("the next start is at port %d", port)
	}
}

// TestHostOptions: the host serves where the options say, the super cluster to
// clients that name no control plane, and keeps its data in the directory.
func TestHostOptions(t *testing.T) {
	s := &standalone{opts: inDirectory(t), dir: openDir(t), log: &logs{Logger: logr.Discard()}}
	if err := s.dir.RememberPort(4711); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[int]int{unsetPort: 4711, 0: 4711, 8443: 8443} {
		s.opts.Port = asked
		options := s.hostOptions()
		if options.Port != want || options.Listen != "127.0.0.1" || options.Dir != s.dir.Path() || !options.UnsafeNoFsync {
			t.Errorf("--port %d: the options are %+v", asked, options)
		}
		if options.Default != superName || options.Super != superName || options.PodAddress != nil {
			t.Errorf("the super cluster is %q, or %q for clients that name none; pods reach it at %v",
				options.Super, options.Default, options.PodAddress)
		}
	}
	if network := s.podNetwork(); network != simulated.PodNetwork {
		t.Errorf("pods have addresses of %s", network)
	}
	if err := s.closeNode(); err != nil {
		t.Errorf("there is no node to close: %v", err)
	}
}

// TestHasKubectl: a program of that name counts if it can be run.
func TestHasKubectl(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, mode := range []os.FileMode{0, 0o600, 0o700} {
		if mode != 0 {
			if err := os.WriteFile(filepath.Join(dir, "kubectl"), nil, mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "kubectl"), mode); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := hasKubectl(), mode == 0o700; got != want {
			t.Errorf("with mode %o, there is a kubectl: %t, want %t", mode, got, want)
		}
	}
}

// TestSuperSpec: only a super cluster with a real node authorizes nodes, and
// runs the controllers that kubelets need.
func TestSuperSpec(t *testing.T) {
	s := &standalone{opts: DefaultOptions()}
	without := s.superSpec()
	s.opts.Nodes = Nodes{Real: true}
	with := s.superSpec()
	if without.NodeAuthorization || !with.NodeAuthorization || len(with.Controllers) <= len(without.Controllers) {
		t.Errorf("controllers with simulated nodes are %v, with a real one %v", without.Controllers, with.Controllers)
	}
	if _, open := without.Network.(egress.Unrestricted); !open || without.Name != superName {
		t.Errorf("the super cluster is %+v", without)
	}
}
