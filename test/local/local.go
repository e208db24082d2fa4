// Package local runs a local super cluster for tests and benchmarks:
// vc-standalone without its syncer as a child process, and the syncer in the
// calling process, where it can be stopped, measured and checked by the race
// detector.
package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Binary is the environment variable with the path of vc-standalone.
const Binary = "VC_STANDALONE"

// Isolation is the environment variable with the isolation of tenants whose
// VirtualClusters do not choose it: the suites run with each.
const Isolation = "VC_TENANT_ISOLATION"

// kubeconfigFile is the admin's kubeconfig in the data directory.
const kubeconfigFile = "super.kubeconfig"

const (
	startTimeout = 5 * time.Minute
	stopTimeout  = 90 * time.Second
)

// SuperCluster is a super cluster that runs in a child process.
type SuperCluster struct {
	// Config and Client have the permissions of an admin.
	Config *rest.Config
	Client client.WithWatch
	// Dir is the data directory.
	Dir string

	// agent is the address of this process's agent, which tenants' apiservers
	// are configured with; empty if the super cluster runs its own.
	agent   string
	process *exec.Cmd
	ended   chan error
}

// Durable is an environment variable: if it is set, super clusters of tests and
// stores write to the disk as in production, for figures. A killed process loses
// nothing without.
const Durable = "VC_STORE_FSYNC"

// Start starts a super cluster and waits until it is ready. Further arguments
// are passed to vc-standalone up.
func Start(ctx context.Context, dir string, args ...string) (*SuperCluster, error) {
	binary := os.Getenv(Binary)
	if binary == "" {
		return nil, fmt.Errorf("set %s to the path of vc-standalone; make test does", Binary)
	}
	if os.Getenv(Durable) == "" {
		args = append([]string{"--unsafe-no-fsync"}, args...)
	}
	return StartBinary(ctx, binary, dir, args...)
}

// StartBinary does the same with the vc-standalone at a path.
func StartBinary(ctx context.Context, binary, dir string, args ...string) (*SuperCluster, error) {
	s := &SuperCluster{Dir: dir, ended: make(chan error, 1)}
	free, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	if slices.Contains(args, "--agent=false") {
		s.agent = net.JoinHostPort(loopback, free[2])
		args = append(args, "--vn-agent-address", s.agent)
	}
	if isolation := os.Getenv(Isolation); isolation != "" {
		args = append([]string{"--tenant-isolation", isolation}, args...)
	}
	// Stop sends the child a signal, so that it can clean up. The context of
	// CommandContext would kill it.
	s.process = exec.Command(binary, slices.Concat([]string{"up", "--data-dir", dir}, ports(dir, free[0], free[1]), args)...)
	// The wrapper forces a pipe. With os.Stderr itself, Ginkgo, which waits
	// after a spec until all writers have closed it, would wait for the child.
	s.process.Stderr = struct{ io.Writer }{os.Stderr}
	s.process.WaitDelay = stopTimeout
	s.process.Env = Environment()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, s.connect()
}

// ports returns the arguments for the ports of a super cluster. One that starts again
// has the same ones, which no client of another process takes meanwhile.
func ports(dir, port, gateway string) []string {
	if _, err := os.Stat(filepath.Join(dir, kubeconfigFile)); err == nil {
		return []string{"--port", "0"} // those of the last time
	}
	return []string{"--port", port, "--gateway-port", gateway}
}

// start starts the process and waits until it reports that it is ready.
func (s *SuperCluster) start(ctx context.Context) error {
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start vc-standalone: %w", err)
	}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stdout)
		for once := false; lines.Scan(); {
			if !once && strings.HasPrefix(lines.Text(), "ready") {
				once = true
				close(ready)
			}
		}
		s.ended <- s.process.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-ready:
		return nil
	case err := <-s.ended:
		s.ended <- err
		return fmt.Errorf("vc-standalone exited before it was ready; see vc-standalone.log in %s: %w", s.Dir, err)
	case <-ctx.Done():
		return fmt.Errorf("vc-standalone is not ready: %w", ctx.Err())
	}
}

// connect creates the admin's client.
func (s *SuperCluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.Dir, kubeconfigFile))
	if err != nil {
		return fmt.Errorf("read the super cluster's kubeconfig: %w", err)
	}
	config.QPS = -1
	s.Config = config
	s.Client, err = NewClient(config)
	return err
}

// PID returns the process ID of the super cluster.
func (s *SuperCluster) PID() int { return s.process.Process.Pid }

// Stop stops the super cluster and waits for it. It is idempotent.
func (s *SuperCluster) Stop() error {
	if s.process.Process == nil {
		return nil
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop vc-standalone: %w", err)
	}
	select {
	case err := <-s.ended:
		s.ended <- err
		return err
	case <-time.After(stopTimeout):
		return errors.Join(errors.New("vc-standalone did not stop in time"), s.process.Process.Kill())
	}
}

// NewClient returns a client with a scheme of all kinds that tests use.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, tenancyv1alpha1.AddToScheme, networkv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
