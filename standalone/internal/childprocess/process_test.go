package childprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain plays vc-standalone in the child: its first argument says how.
func TestMain(m *testing.M) {
	RunIfChild(child)
	os.Exit(m.Run())
}

func child() {
	switch how := os.Args[1]; how {
	case "serve":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Println("starting")
		fmt.Println("ready: after all")
		<-stop
		fmt.Println("stopped")
		os.Exit(0)
	case "fail":
		fmt.Println("starting")
		fmt.Fprintln(os.Stderr, "no port is free")
		os.Exit(3)
	case "chat":
		fmt.Println(strings.Repeat("long", 1<<18))
		fmt.Print("ready, without an end of line")
		os.Exit(0)
	default:
		os.Exit(99)
	}
}

func start(t *testing.T, how string) *Process {
	t.Helper()
	p, err := Start(t.Context(), how)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProcess tests that a child is started, becomes ready, and exits when it
// is stopped.
func TestProcess(t *testing.T) {
	p := start(t, "serve")
	if err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.PID() == os.Getpid() || p.PID() <= 0 {
		t.Errorf("the child is process %d", p.PID())
	}
	if code, err := p.Stop(t.Context(), syscall.SIGTERM); err != nil || code != 0 {
		t.Errorf("it ended with code %d (%v): %s", code, err, p.Stderr())
	}
	if want := "starting\nready: after all\nstopped"; p.Output() != want {
		t.Errorf("it said %q, want %q", p.Output(), want)
	}
	if _, err := p.Stop(t.Context(), syscall.SIGTERM); err != nil {
		t.Errorf("a process that has ended cannot be stopped: %v", err)
	}
}

// TestProcessThatFails: a caller that waits for it gets the code and the
// reason.
func TestProcessThatFails(t *testing.T) {
	p := start(t, "fail")
	err := p.AwaitReady(t.Context())
	if err == nil || !strings.Contains(err.Error(), "code 3: no port is free") {
		t.Errorf("got %v", err)
	}
	if code, err := p.AwaitEnd(t.Context()); err != nil || code != 3 {
		t.Errorf("code %d (%v), want 3", code, err)
	}
	if p.Stderr() != "no port is free" {
		t.Errorf("it said %q on standard error", p.Stderr())
	}
}

// TestWaitingEnds: waiting ends with its context.
func TestWaitingEnds(t *testing.T) {
	p := start(t, "serve")
	if err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.AwaitEnd(soon); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("got %v", err)
	}
	if _, err := p.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestLongLines: output that is longer than any buffer does not stop the child.
func TestLongLines(t *testing.T) {
	p := start(t, "chat")
	if code, err := p.AwaitEnd(t.Context()); err != nil || code != 0 {
		t.Errorf("code %d (%v)", code, err)
	}
	if err := p.AwaitReady(t.Context()); err != nil && !strings.Contains(err.Error(), "ended with code 0") {
		t.Error(err)
	}
	if first, last, _ := strings.Cut(p.Output(), "\n"); len(first) != 4<<18 || last != "ready, without an end of line" {
		t.Errorf("it said %d bytes in its first line, and then %q", len(first), last)
	}
}

// TestEndOfContext: a child whose context ends is killed, and one whose context
// has ended is not started.
func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, "serve")
	if err != nil {
		t.Fatal(err)
	}
	waiting, expire := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("no time"))
	defer expire()
	<-waiting.Done()
	if err := p.AwaitReady(waiting); err != nil && !strings.Contains(err.Error(), "is not ready: no time") {
		t.Errorf("got %v", err)
	}
	cancel()
	if code, err := p.AwaitEnd(t.Context()); err != nil || code != -1 {
		t.Errorf("it ended with code %d (%v), want that of a signal", code, err)
	}
	if _, err := Start(ctx, "serve"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context has ended", err)
	}
}
