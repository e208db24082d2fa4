package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// SyncerBinary is the environment variable with the path of vc-syncer. The
// default is the one beside vc-standalone.
const SyncerBinary = "VC_SYNCER"

// SyncerProcess is a syncer in a child process, which can be killed.
type SyncerProcess struct {
	// Agent is the prefix of the process's user agent, before the slash. It is
	// unique.
	Agent   string
	process *exec.Cmd
	ended   chan error
}

// StartSyncerProcess starts vc-syncer with further arguments, as the service
// account of SyncerConfig, and does not wait until it is ready.
func (s *SuperCluster) StartSyncerProcess(log io.Writer, args ...string) (*SyncerProcess, error) {
	binary := cmp.Or(os.Getenv(SyncerBinary), filepath.Join(filepath.Dir(os.Getenv(Binary)), "vc-syncer"))
	return s.StartSyncerProgram(binary, log, args...)
}

// StartSyncerProgram is like StartSyncerProcess for another program.
func (s *SuperCluster) StartSyncerProgram(binary string, log io.Writer, args ...string) (*SyncerProcess, error) {
	return RunSyncer(binary, log, append([]string{
		"--kubeconfig", filepath.Join(s.Dir, syncerKubeconfig),
		"--health-probe-bind-address", "0",
		"--node-linger", nodeLinger.String(),
	}, args...)...)
}

// RunSyncer starts the vc-syncer at a path with only these arguments.
func RunSyncer(binary string, log io.Writer, args ...string) (*SyncerProcess, error) {
	p := &SyncerProcess{Agent: fmt.Sprint(filepath.Base(binary), "-", rand.Uint32()), ended: make(chan error, 1)}
	p.process = exec.Command(binary, args...)
	p.process.Args[0] = p.Agent // user agents begin with it
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start vc-syncer (build it with make build, or set %s): %w", SyncerBinary, err)
	}
	go func() { p.ended <- p.process.Wait() }()
	return p, nil
}

// PID returns the process ID of the syncer.
func (p *SyncerProcess) PID() int { return p.process.Process.Pid }

// Stop terminates the syncer and waits for it. It is idempotent.
func (p *SyncerProcess) Stop() error {
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop vc-syncer: %w", err)
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(stopTimeout):
		return errors.Join(errors.New("vc-syncer did not stop in time"), p.Kill())
	}
}

// Ended waits until the syncer exits by itself, and returns its exit error. It
// is idempotent.
func (p *SyncerProcess) Ended(ctx context.Context) error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-ctx.Done():
		return fmt.Errorf("vc-syncer has not exited: %w", ctx.Err())
	}
}

// Kill kills the syncer. It fails if the syncer has exited by itself. It is
// idempotent.
func (p *SyncerProcess) Kill() error {
	if err := p.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill vc-syncer: %w", err)
	}
	err := <-p.ended
	p.ended <- err
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return nil
	}
	return fmt.Errorf("vc-syncer exited by itself: %w", err)
}
