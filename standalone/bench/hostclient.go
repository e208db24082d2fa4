package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/internal/childprocess"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// hostClient controls a child with a host.
type hostClient struct {
	process *childprocess.Process
	address string
	settle  time.Duration
	// profiles is the directory for heap profiles; empty for none.
	profiles string
	// shared selects the isolation of control planes.
	shared bool
}

// startHost starts a child with a host. The caller calls end.
func startHost(ctx context.Context, opts *options, dir string) (host *hostClient, end func(), err error) {
	p, end, err := startReady(ctx, hostChild, dir)
	if err != nil {
		return nil, nil, err
	}
	_, address, _ := strings.Cut(p.Output(), "ready ")
	shared := opts.isolation == string(tenancyv1alpha1.IsolationShared)
	return &hostClient{process: p, address: address, settle: opts.settle, profiles: opts.profiles, shared: shared}, end, nil
}

// run runs control planes, some at a time, and returns clients' configurations
// when all are ready.
func (h *hostClient) run(ctx context.Context, names ...string) ([]*rest.Config, error) {
	configs := make([]*rest.Config, 0, len(names))
	for chunk := range slices.Chunk(names, group) {
		result, err := h.do(ctx, runPath, runCommand{Names: chunk, Shared: h.shared})
		if err != nil {
			return nil, fmt.Errorf("run %d control planes: %w", len(chunk), err)
		}
		for _, kubeconfig := range result.Kubeconfigs {
			config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
			if err != nil {
				return nil, fmt.Errorf("read a kubeconfig: %w", err)
			}
			config.QPS = -1
			configs = append(configs, config)
		}
	}
	return configs, nil
}

// sleep puts control planes to sleep.
func (h *hostClient) sleep(ctx context.Context, names ...string) error {
	if _, err := h.do(ctx, sleepPath, sleepCommand{Names: names, Shared: h.shared}); err != nil {
		return fmt.Errorf("put %d control planes to sleep: %w", len(names), err)
	}
	return nil
}

// cost is what a process uses.
type cost struct{ mib, goroutines float64 }

// cost collects the garbage of the host until its memory no longer changes, and
// writes a heap profile if there is a directory for it.
func (h *hostClient) cost(ctx context.Context) (c cost, err error) {
	c.mib, err = settled(ctx, h.settle, func() (float64, error) {
		state, err := h.do(ctx, garbagePath, nil)
		if err != nil {
			return 0, err
		}
		c.goroutines = float64(state.Goroutines)
		usage, err := measure.UsageOf(h.process.PID())
		return float64(usage.Resident) / measure.MiB, err
	})
	if err != nil || h.profiles == "" {
		return c, err
	}
	return c, h.profile(ctx)
}

// profile writes a heap profile to a new file.
func (h *hostClient) profile(ctx context.Context) error {
	result, err := h.do(ctx, profilePath, nil)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(h.profiles, fmt.Sprintf("heap-%s-*.pb.gz", time.Now().Format("150405")))
	if err != nil {
		return fmt.Errorf("write a heap profile: %w", err)
	}
	_, err = file.Write(result.Profile)
	return errors.Join(err, file.Close())
}

// idleCPU returns the share of a core that the host uses during an interval, in
// percent.
func (h *hostClient) idleCPU(ctx context.Context, interval time.Duration) (float64, error) {
	before, err := measure.UsageOf(h.process.PID())
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := measure.UsageOf(h.process.PID())
	return 100 * float64(after.CPU-before.CPU) / float64(interval), err
}

func (h *hostClient) do(ctx context.Context, path string, command any) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var result state
	body, err := json.Marshal(command)
	if err != nil {
		return result, err
	}
	url := "http://" + h.address + path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return result, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return result, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return result, fmt.Errorf("the host responds %s: %s", response.Status, text)
	}
	return result, json.NewDecoder(response.Body).Decode(&result)
}
