package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	policyEngine = "the policy engine of the real node"
	// stillCPU is the processor time during the option Quiet below which a process
	// has nothing to do.
	stillCPU = 50 * time.Millisecond
)

// memoryBeside starts the processes that serve networks beside the syncer, and
// adds their memory. The policy engine filters a network namespace of its own.
func (w *world) memoryBeside(ctx context.Context, s *report.Scenario, name string) error {
	if err := w.memoryOfDNS(ctx, s, name); err != nil {
		return err
	}
	engine := filepath.Join(w.opts.Binaries, "node", "node-policies")
	if _, err := os.Stat(engine); err != nil || os.Geteuid() != 0 {
		s.Notef("%s is not measured: it needs root, and %s, which make node builds", policyEngine, engine)
		return nil
	}
	namespace, err := w.newNetworkNamespace(ctx)
	if err != nil {
		return err
	}
	defer namespace.stop()
	return w.memoryOfReader(ctx, s, policyEngine, name, exec.Command(engine, "--kubeconfig", w.access.kubeconfig,
		"--runtime", "unix:///none", "--network-namespace", namespace.path()))
}

// memoryOfDNS adds the memory of vc-dns. It has the names of all tenants, and no
// ports.
func (w *world) memoryOfDNS(ctx context.Context, s *report.Scenario, name string) error {
	address, err := local.FreeAddress(ctx)
	if err != nil {
		return err
	}
	corefile := filepath.Join(w.dir, "Corefile")
	text := fmt.Sprintf("dns://%s {\n tenants {\n kubeconfig %s\n listen 127.0.0.1\n }\n tenantnames\n}\n", address, w.access.kubeconfig)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration of vc-dns: %w", err)
	}
	return w.memoryOfReader(ctx, s, "vc-dns", name, exec.Command(filepath.Join(w.opts.Binaries, "vc-dns"), "-conf", corefile))
}

// path returns the path of the network namespace of the process.
func (c *child) path() string { return fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid) }

// newNetworkNamespace returns a process in a network namespace of its own.
func (w *world) newNetworkNamespace(ctx context.Context) (*child, error) {
	c, err := startChild(exec.Command("unshare", "--net", "sleep", "infinity"))
	if err != nil {
		return nil, err
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err == nil {
		err = wait.PollUntilContextTimeout(ctx, glance, patience, true, func(context.Context) (bool, error) {
			theirs, err := os.Readlink(c.path())
			return theirs != own, err
		})
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("create a network namespace: %w", err)
	}
	return c, nil
}

// memoryOfReader starts a process that reads the super cluster, and adds the
// memory that it has when it has nothing to do, and the time that it took.
func (w *world) memoryOfReader(ctx context.Context, s *report.Scenario, of, name string, command *exec.Cmd) error {
	w.progress.sayf("memory of %s: %s", of, name)
	log, err := os.Create(filepath.Join(w.results, filepath.Base(command.Path)+".log"))
	if err != nil {
		return fmt.Errorf("create the log of %s: %w", of, err)
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	process, err := startChild(command)
	if err != nil {
		return err
	}
	defer process.stop()
	usage, err := w.idleUsage(ctx, process)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", of, err)
	}
	s.Add(fmt.Sprintf("memory of %s, %s", of, name), "MiB", float64(usage.Resident)/measure.MiB, 1)
	s.Add(fmt.Sprintf("processor time of %s to start, %s", of, name), "ms", measure.Milliseconds(usage.CPU), 1)
	return nil
}

// idleUsage returns the usage of a process when it has nothing to do any more.
func (w *world) idleUsage(ctx context.Context, c *child) (last measure.Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for first := true; ; first = false {
		select {
		case <-time.After(w.opts.Quiet):
		case <-c.ended:
			return last, errors.New("it has ended: " + c.ProcessState.String())
		case <-ctx.Done():
			return last, ctx.Err()
		}
		now, err := measure.UsageOf(c.Process.Pid)
		if err != nil || !first && now.CPU-last.CPU < stillCPU {
			return now, err
		}
		last = now
	}
}
