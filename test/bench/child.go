package bench

import (
	"context"
	"fmt"
	"os/exec"
)

// child is a process that the program has started.
type child struct {
	*exec.Cmd
	ended chan struct{}
}

func startChild(command *exec.Cmd) (*child, error) {
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	c := &child{command, make(chan struct{})}
	go func() {
		defer close(c.ended)
		_ = command.Wait() // its state has the exit code
	}()
	return c, nil
}

// stop kills the process and waits for it.
func (c *child) stop() {
	_ = c.Process.Kill()
	<-c.ended
}

// while returns a context that also ends with the process.
func (c *child) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.ended:
			cancel(fmt.Errorf("%s has ended: %s", c.Path, c.ProcessState))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
