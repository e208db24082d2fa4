package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// containers implements the streaming API of the containers that a Kubelet
// pretends to run.
type containers struct{}

// ExecInContainer runs the command on this machine.
func (containers) ExecInContainer(
	ctx context.Context, _, _, _ string, command []string, in io.Reader, out, err io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Stdout, process.Stderr = writerOr(out), writerOr(err)
	if in != nil {
		stdin, err := process.StdinPipe()
		if err != nil {
			return err
		}
		go func() { // ends with the stream
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	failed := process.Run()
	if exit, ok := errors.AsType[*exec.ExitError](failed); ok {
		return utilexec.CodeExitError{Err: exit, Code: exit.ExitCode()}
	}
	return failed
}

// AttachContainer echoes its input.
func (containers) AttachContainer(
	_ context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize,
) error {
	return echo(writerOr(out), in)
}

// PortForward writes the port and echoes its input.
func (containers) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if _, err := fmt.Fprintf(stream, "port %d\n", port); err != nil {
		return err
	}
	return echo(stream, stream)
}

func echo(to io.Writer, from io.Reader) error {
	if from == nil {
		return nil
	}
	_, err := io.Copy(to, from)
	return err
}

// writerOr returns the stream, or a writer that discards when there is none.
func writerOr(stream io.WriteCloser) io.Writer {
	if stream == nil {
		return io.Discard
	}
	return stream
}
