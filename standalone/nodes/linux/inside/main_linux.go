package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

// Main runs process 1. It returns when the input ends, or when the node cannot
// be set up.
func Main(ctx context.Context, input io.Reader, log logr.Logger) error {
	decoder := json.NewDecoder(input)
	settings := &Settings{}
	if err := decoder.Decode(settings); err != nil {
		return fmt.Errorf("read the node's settings: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // until the process exits
		_, _ = io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), input))
		cancel()
	}()
	if err := setUp(settings); err != nil {
		return err
	}
	return newServices(ctx, log).run(ctx, settings)
}

// setUp configures the namespaces, which start as copies of those of this
// machine.
func setUp(settings *Settings) error {
	if err := unix.Sethostname([]byte(settings.Name)); err != nil {
		return fmt.Errorf("set the node's name: %w", err)
	}
	if err := mountAll(settings); err != nil {
		return err
	}
	if err := setKernel(); err != nil {
		return err
	}
	return writeFiles(settings)
}
