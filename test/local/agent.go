package local

import (
	"context"
	"net"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/vnagent/app"
)

// agentCertificate is the file in the data directory with the certificate and
// key that tenants' apiservers accept from an agent.
const agentCertificate = "vn-agent/server.pem"

// Agent is a vn-agent that runs in this process.
type Agent struct {
	// Address is where the agent serves the kubelet API.
	Address string

	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan error
}

// StartAgent starts an agent with the permissions of a configuration. The super
// cluster must have been started without its own.
func (s *SuperCluster) StartAgent(config *rest.Config, logger logr.Logger, change ...func(*app.Options)) (*Agent, error) {
	listener, err := net.Listen("tcp", s.agent)
	if err != nil {
		return nil, err
	}
	opts := app.DefaultOptions()
	opts.Listener, opts.Logger = listener, logger
	opts.CertFile = filepath.Join(s.Dir, agentCertificate)
	opts.KeyFile = opts.CertFile
	ctx, cancel := context.WithCancel(context.Background())
	a := &Agent{Address: listener.Addr().String(), registry: prometheus.NewRegistry(), cancel: cancel, ended: make(chan error, 1)}
	opts.Registerer = a.registry
	for _, f := range change {
		f(&opts)
	}
	go func() { a.ended <- app.Run(ctx, config, opts) }()
	return a, nil
}

// Stop stops the agent and waits for it. It is idempotent.
func (a *Agent) Stop() error {
	a.cancel()
	err := <-a.ended
	a.ended <- err
	return err
}

// Metric returns the value of a metric, see Syncer.Metric.
func (a *Agent) Metric(name string, with map[string]string) (float64, error) {
	return metric(a.registry, name, with)
}
