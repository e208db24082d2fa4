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

// SyncerBinary is the environment variable that names the vc-syncer to run; by default the one beside vc-standalone.
const SyncerBinary = "VC_SYNCER"

// SyncerProcess is a syncer in a process of its own, which can be killed.
type SyncerProcess struct {
	// Agent is what the process calls itself towards apiservers, in front of a slash. No other process does.
	Agent   string
	process *exec.Cmd
	ended   chan error
}

// StartSyncerProcess starts vc-syncer for the super cluster as the service account of SyncerConfig, with further arguments. It does
// not wait until that works.
func (s *SuperCluster) StartSyncerProcess(log io.Writer, args ...string) (*SyncerProcess, error) {
	binary := cmp.Or(os.Getenv(SyncerBinary), filepath.Join(filepath.Dir(os.Getenv(Binary)), "vc-syncer"))
	return RunSyncer(binary, log, append([]string{
		"--kubeconfig", filepath.Join(s.Dir, syncerKubeconfig),
		"--health-probe-bind-address", "0",
		"--node-linger", nodeLinger.String(),
	}, args...)...)
}

// RunSyncer starts the vc-syncer at a path with nothing but the arguments.
func RunSyncer(binary string, log io.Writer, args ...string) (*SyncerProcess, error) {
	p := &SyncerProcess{Agent: fmt.Sprint(filepath.Base(binary), "-", rand.Uint32()), ended: make(chan error, 1)}
	p.process = exec.Command(binary, args...)
	p.process.Args[0] = p.Agent // user agents begin with it
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("starting vc-syncer; make build makes it, and %s names it: %w", SyncerBinary, err)
	}
	go func() { p.ended <- p.process.Wait() }()
	return p, nil
}

// PID is the process of the syncer.
func (p *SyncerProcess) PID() int { return p.process.Process.Pid }

// Stop tells the syncer to end and waits until it has. It can be called again.
func (p *SyncerProcess) Stop() error {
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping vc-syncer: %w", err)
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(stopTimeout):
		return errors.Join(errors.New("vc-syncer did not stop in time"), p.Kill())
	}
}

// Ended waits until the syncer has ended by itself, and returns the error with which it did. It can be called again.
func (p *SyncerProcess) Ended(ctx context.Context) error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-ctx.Done():
		return fmt.Errorf("vc-syncer has not ended: %w", ctx.Err())
	}
}

// Kill ends the syncer without a warning. It is an error if the syncer had ended by itself. It can be called again.
func (p *SyncerProcess) Kill() error {
	if err := p.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing vc-syncer: %w", err)
	}
	err := <-p.ended
	p.ended <- err
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return nil
	}
	return fmt.Errorf("vc-syncer ended by itself: %w", err)
}
