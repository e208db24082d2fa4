package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// reaper starts processes and reaps its own, and the orphans of containers and
// their shims.
type reaper struct {
	ended chan os.Signal

	mu      sync.Mutex
	running map[int]*process
}

// process is a process that the reaper started.
type process struct {
	pid int
	// done is closed when the process has exited; status is set before.
	done   chan struct{}
	status unix.WaitStatus
}

// newReaper returns a reaper that works until ctx ends.
func newReaper(ctx context.Context) *reaper {
	r := &reaper{ended: make(chan os.Signal, 1), running: map[int]*process{}}
	signal.Notify(r.ended, unix.SIGCHLD)
	go r.work(ctx) // until ctx ends
	return r
}

func (r *reaper) work(ctx context.Context) {
	for {
		select {
		case <-r.ended:
			r.collect()
		case <-ctx.Done():
			return
		}
	}
}

// collect reaps all processes that have exited: the kernel merges signals that
// are pending at the same time.
func (r *reaper) collect() {
	for {
		status := unix.WaitStatus(0)
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case pid <= 0:
			return
		default:
			r.tell(pid, status)
		}
	}
}

func (r *reaper) tell(pid int, status unix.WaitStatus) {
	r.mu.Lock() // waits for a start in progress
	defer r.mu.Unlock()
	if p := r.running[pid]; p != nil {
		delete(r.running, pid)
		p.status = status
		close(p.done)
	}
}

// start starts a program with its output in a log.
func (r *reaper) start(log *os.File, argv ...string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	started, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: environment(), Files: []*os.File{nil, log, log},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	p := &process{pid: started.Pid, done: make(chan struct{})}
	r.running[p.pid] = p
	return p, started.Release()
}

// environment returns an environment with nothing but PATH.
func environment() []string {
	return []string{"PATH=" + programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// result returns how the process exited, once done is closed.
func (p *process) result() error {
	switch {
	case p.status.Exited() && p.status.ExitStatus() == 0:
		return nil
	case p.status.Exited():
		return fmt.Errorf("exit code %d", p.status.ExitStatus())
	default:
		return fmt.Errorf("signal %s", p.status.Signal())
	}
}
