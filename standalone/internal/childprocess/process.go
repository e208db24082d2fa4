// Package childprocess runs a program, such as vc-standalone, as a child
// process, for tests and benchmarks. The child is the running binary again,
// whose main or TestMain calls RunIfChild first.
package childprocess

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// childVariable marks a process that is a child.
const childVariable = "VC_STANDALONE_TEST_CHILD"

// RunIfChild runs main, which does not return, if this process was started by
// this package.
func RunIfChild(main func()) {
	if os.Getenv(childVariable) != "" {
		main()
	}
}

// Process is a child that was started.
type Process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	// ready is closed when the line came that says so.
	ready chan struct{}
	// done is closed when the process has ended; code is set before.
	done chan struct{}
	code int

	mu  sync.Mutex
	out []string
}

// Start starts a child with arguments. It is killed when ctx ends.
func Start(ctx context.Context, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &Process{
		cmd:   exec.CommandContext(ctx, self, args...), //nolint:gosec // the test that runs it says what to run
		ready: make(chan struct{}),
		done:  make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the child: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the child: %w", err)
	}
	go p.follow(stdout) // ends with the process
	return p, nil
}

// follow reads the output until the process ends.
func (p *Process) follow(stdout io.Reader) {
	defer close(p.done)
	ready := sync.OnceFunc(func() { close(p.ready) })
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadString('\n') // of any length: a process whose output is not read does not end
		if err != nil && line == "" {
			break
		}
		line = strings.TrimSuffix(line, "\n")
		p.mu.Lock()
		p.out = append(p.out, line)
		p.mu.Unlock()
		if strings.HasPrefix(line, "ready") {
			ready()
		}
	}
	_ = p.cmd.Wait() // the exit code says as much
	p.code = p.cmd.ProcessState.ExitCode()
}

// AwaitReady waits for the line that begins with "ready".
func (p *Process) AwaitReady(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return fmt.Errorf("the child ended with code %d: %s", p.code, p.Stderr())
	case <-ctx.Done():
		return fmt.Errorf("the child is not ready: %w; it said: %s", context.Cause(ctx), p.Output())
	}
}

// AwaitEnd waits until the process has ended and returns its exit code.
func (p *Process) AwaitEnd(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.code, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("the child still runs: %w", context.Cause(ctx))
	}
}

// Stop sends the process a signal and waits until it has ended.
func (p *Process) Stop(ctx context.Context, signal os.Signal) (int, error) {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("stop the child: %w", err)
	}
	return p.AwaitEnd(ctx)
}

// PID is the process' number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is what the process has said on standard output so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.out, "\n")
}

// Stderr is what a process that has ended said on standard error.
func (p *Process) Stderr() string {
	<-p.done
	return strings.TrimSpace(p.stderr.String())
}
