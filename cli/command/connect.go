package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtualcluster/virtualcluster/cli/access"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// stopTimeout is how long a command may take to stop.
const stopTimeout = 10 * time.Second

// connectOptions are the options of connect.
type connectOptions struct {
	*platform

	name     string
	command  []string
	lifetime time.Duration
	gateway  bool
}

func newConnect(p *platform) *cobra.Command {
	o := &connectOptions{platform: p}
	c := &cobra.Command{
		Use:   "connect NAME [-- COMMAND...]",
		Short: "Run a command, or a shell, with the kubeconfig of a tenant",
		Long: "Run a command, or a shell, with the kubeconfig of a tenant in $KUBECONFIG. " +
			"Your own kubeconfig and its current context are not changed.\n\n" +
			"The credentials are a token that expires; it is renewed while the command runs, and its file is deleted at the end. " +
			"If the address of the apiserver cannot be reached from here, the command is connected through the gateway. " +
			"Without one, and if the address is that of a Service of the super cluster, a port is forwarded to the pod behind it.\n\n" +
			"The kubeconfig may have a TLS server name, which many programs besides kubectl ignore; with --gateway it has none.\n\n" +
			"The exit code is that of the command.",
		Example: "  kubectl vc connect red -n team -- kubectl get pods -A\n\n" +
			"  # a shell; exit returns to your own context\n  kubectl vc connect red -n team",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash != 1 && len(args) > 1 {
				return exit.With(exit.Usagef("connect: expected one name, got %q", args),
					"Write the command behind --: kubectl vc connect NAME -- COMMAND")
			}
			return run(o)(c, args)
		},
	}
	c.Flags().DurationVar(&o.lifetime, "duration", defaultLifetime, "How long each token is valid, at least 10m")
	c.Flags().BoolVar(&o.gateway, "gateway", false, "Connect through the gateway, even if the address of the control plane can be reached")
	return c
}

// Complete reads the name and the command; by default a shell.
func (o *connectOptions) Complete(args []string) error {
	o.name, o.command = args[0], args[1:]
	if len(o.command) == 0 {
		o.command = []string{shell(os.Getenv("SHELL"))}
	}
	return nil
}

// shell returns the user's shell.
func shell(preferred string) string {
	if preferred == "" {
		return "/bin/sh"
	}
	return preferred
}

// Validate checks the flags.
func (o *connectOptions) Validate() error { return validateLifetime(o.lifetime) }

// Run runs the command.
func (o *connectOptions) Run(ctx context.Context) error {
	open := o.open
	if o.gateway {
		open = o.openGateway
	}
	t, err := open(ctx, o.name)
	if err != nil {
		return err
	}
	defer t.close()
	dir, err := os.MkdirTemp("", "kubectl-vc-")
	if err != nil {
		return fmt.Errorf("create a directory for the kubeconfig: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			sayf(o.ErrOut, "warning: delete the credentials: %v", err)
		}
	}()
	token := &tokenFile{tenant: t, path: filepath.Join(dir, "token"), lifetime: o.lifetime}
	renewal, err := token.issue(ctx)
	if err != nil {
		return exit.With(err, "If the tenant issues no tokens, use its permanent kubeconfig: kubectl vc kubeconfig %s -n %s --permanent",
			t.key.Name, t.key.Namespace)
	}
	config := access.Kubeconfig(t.key, t.route.Config, &clientcmdapi.AuthInfo{TokenFile: token.path})
	file := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if t.route.Via != "" {
		sayf(o.ErrOut, "Connected to %s by %s", t.key, t.route.Via)
	}
	renewing, stop := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		token.renew(renewing, renewal, func(err error) { sayf(o.ErrOut, "warning: renew the credentials: %v", err) })
	}()
	defer func() { stop(); <-renewed }()
	return o.exec(ctx, file)
}

// exec runs the command with a kubeconfig, and returns its exit code as an
// error.
func (o *connectOptions) exec(ctx context.Context, kubeconfig string) error {
	process := exec.CommandContext(ctx, o.command[0], o.command[1:]...) //nolint:gosec // the user's own command
	process.Env = append(os.Environ(), clientcmd.RecommendedConfigPathEnvVar+"="+kubeconfig)
	process.Stdin, process.Stdout, process.Stderr = o.raw.In, o.raw.Out, o.raw.ErrOut
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = stopTimeout
	err := process.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
		return &exit.Error{Code: ended.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", o.command[0], err)
	}
	return nil
}

// tokenFile is a file with a token of a tenant that is renewed.
type tokenFile struct {
	tenant   *tenant
	path     string
	lifetime time.Duration
}

// issue writes a new token, and returns when to renew it.
func (f *tokenFile) issue(ctx context.Context) (time.Duration, error) {
	token, err := access.IssueToken(ctx, f.tenant.objects, f.lifetime)
	if err != nil {
		return 0, err
	}
	// Processes that read the file at the same time read the old token or the
	// new one.
	next := f.path + ".next"
	if err := os.WriteFile(next, []byte(token.Token), ownerOnly); err != nil {
		return 0, fmt.Errorf("write the token: %w", err)
	}
	if err := os.Rename(next, f.path); err != nil {
		return 0, fmt.Errorf("write the token: %w", err)
	}
	return time.Until(token.Expires) / 2, nil
}

// retryRenewal is how long after a failed renewal the next one follows.
const retryRenewal = time.Minute

// renew renews the token until ctx ends.
func (f *tokenFile) renew(ctx context.Context, after time.Duration, warn func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(after, retryRenewal)):
		}
		next, err := f.issue(ctx)
		if err != nil && ctx.Err() == nil {
			warn(err)
		}
		after = next
	}
}
