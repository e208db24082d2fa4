package command

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/cli/doctor"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// newProbe returns what the pods of doctor --probe run. It is hidden: users do
// not.
func newProbe(p *platform) *cobra.Command {
	c := &cobra.Command{
		Use: "probe", Short: "Listen and connect, in the pods of doctor --probe", Hidden: true,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newProbeServe(p), newProbeConnect(p))
	return c
}

func newProbeServe(p *platform) *cobra.Command {
	o := &serveOptions{platform: p}
	c := &cobra.Command{Use: "serve", Short: "Accept connections", Args: arguments(cobra.NoArgs), RunE: run(o)}
	c.Flags().StringVar(&o.address, "address", ":8080", "The address to listen at")
	return c
}

// serveOptions are the options of probe serve.
type serveOptions struct {
	*platform

	address string
}

// Complete does nothing: probe serve has no arguments.
func (o *serveOptions) Complete([]string) error { return nil }

// Validate accepts all addresses: listening checks them.
func (o *serveOptions) Validate() error { return nil }

// Run accepts connections, and closes them, until the pod is deleted.
func (o *serveOptions) Run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.address, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // ends Accept
	defer stop()
	sayf(o.ErrOut, "Listening at %s", listener.Addr())
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		_ = conn.Close() // that it was accepted is all that clients observe
	}
}

func newProbeConnect(p *platform) *cobra.Command {
	o := &dialOptions{platform: p}
	c := &cobra.Command{Use: "connect ADDRESS", Short: "Connect to an address", Args: arguments(cobra.ExactArgs(1)), RunE: run(o)}
	c.Flags().StringVar(&o.expect, "expect", doctor.ExpectOpen, "open, or closed")
	c.Flags().DurationVar(&o.within, "within", 30*time.Second, "How long it may take until the address is as expected")
	return c
}

// dialOptions are the options of probe connect.
type dialOptions struct {
	*platform

	address, expect string
	within          time.Duration
}

const (
	// attemptTimeout bounds an attempt to connect: packets that a policy drops
	// are not answered.
	attemptTimeout = 2 * time.Second
	// attemptInterval is the interval of attempts.
	attemptInterval = 500 * time.Millisecond
	// closedAfter is how many attempts in a row have to fail until an address
	// counts as closed.
	closedAfter = 3
)

// Complete reads the address.
func (o *dialOptions) Complete(args []string) error {
	o.address = args[0]
	return nil
}

// Validate checks what is expected.
func (o *dialOptions) Validate() error {
	if o.expect != doctor.ExpectOpen && o.expect != doctor.ExpectClosed {
		return exit.Usagef("--expect: %q is neither %s nor %s", o.expect, doctor.ExpectOpen, doctor.ExpectClosed)
	}
	return nil
}

// Run connects until the address is as expected. Policies are not enforced from
// the first moment of a pod.
func (o *dialOptions) Run(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	failed := 0
	for {
		err := dial(bounded, o.address)
		if bounded.Err() != nil {
			return &exit.Error{Code: doctor.ProbeUnexpected, Err: fmt.Errorf("%s is not %s after %s", o.address, o.expect, o.within)}
		}
		if failed++; err == nil {
			failed = 0
		}
		if err == nil && o.expect == doctor.ExpectOpen || failed == closedAfter && o.expect == doctor.ExpectClosed {
			return nil
		}
		select {
		case <-bounded.Done():
		case <-time.After(attemptInterval):
		}
	}
}

// dial connects once.
func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: attemptTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
