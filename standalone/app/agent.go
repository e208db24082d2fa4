package app

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	vnagent "github.com/virtualcluster/virtualcluster/vnagent/app"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// agentDir holds the agent's serving certificate in the data directory.
const agentDir = "vn-agent"

// agentCertificate is the agent's serving certificate. It is there without an
// agent, too: tenants' apiservers verify the one that an admin runs in another
// process by the same authority.
func (s *standalone) agentCertificate() (*hosted.ServingCertificate, error) {
	return hosted.LoadServingCertificate(s.dir.File(agentDir), agentDir, []string{metricsapi.ServerName}, net.ParseIP(s.agentHost()))
}

// agentHost is where the apiservers in this process reach the agent.
func (s *standalone) agentHost() string {
	if ip := net.ParseIP(s.opts.Listen); !ip.IsUnspecified() {
		return s.opts.Listen
	}
	return defaultListen
}

// listenForAgent opens the port of vn-agent, and returns the address at which
// tenants' apiservers reach it: that of the agent in this process, or in
// another; both empty if there is none.
func (s *standalone) listenForAgent() (listener net.Listener, address string, err error) {
	address = s.opts.SyncerOptions.AgentAddress
	if !s.opts.Agent {
		return nil, address, nil
	}
	listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(s.opts.Listen), Port: s.opts.AgentPort})
	if err != nil {
		return nil, "", fmt.Errorf("listen for vn-agent (see --agent-port): %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return listener, cmp.Or(address, net.JoinHostPort(s.agentHost(), port)), err
}

// startAgent runs vn-agent, if it has a port.
func (s *standalone) startAgent(
	ctx context.Context, crew *crew, super *rest.Config, listener net.Listener, certificate *hosted.ServingCertificate,
) error {
	crew.run("the renewal of the certificate of vn-agent", func(ctx context.Context) error {
		certificate.KeepRenewed(ctx, s.log.WithName("vn-agent"))
		return nil
	})
	if listener == nil {
		return nil
	}
	options := vnagent.DefaultOptions()
	options.Logger = s.log.WithName("vn-agent")
	options.Listener, options.CertFile, options.KeyFile = listener, certificate.File(), certificate.File()
	mgr, err := vnagent.New(ctx, super, options)
	if err != nil {
		return fmt.Errorf("make vn-agent: %w", err)
	}
	crew.run("vn-agent", mgr.Start)
	return s.await(ctx, "vn-agent", mgr)
}
