package app

import (
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	agent "github.com/virtualcluster/virtualcluster/agent/app"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// agentDir holds the agent's serving certificate in the data directory.
const agentDir = "vn-agent"

// agentCertificate is the agent's serving certificate. It is there without an agent, too: tenants' apiservers verify the one that an
// admin runs in another process by the same authority.
func (s *standalone) agentCertificate() (*hosted.ServingCertificate, error) {
	return hosted.LoadServingCertificate(s.dir.File(agentDir), agentDir, net.ParseIP(s.agentHost()))
}

// agentHost is where the apiservers in this process reach the agent.
func (s *standalone) agentHost() string {
	if ip := net.ParseIP(s.opts.Listen); !ip.IsUnspecified() {
		return s.opts.Listen
	}
	return defaultListen
}

// startAgent runs vn-agent, and returns the address at which tenants' apiservers reach it.
func (s *standalone) startAgent(
	ctx context.Context, crew *crew, super *rest.Config, certificate *hosted.ServingCertificate,
) (address string, err error) {
	crew.run("the renewal of the certificate of vn-agent", func(ctx context.Context) error {
		certificate.KeepRenewed(ctx, s.log.WithName("vn-agent"))
		return nil
	})
	if !s.opts.Agent {
		return "", nil
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(s.opts.Listen), Port: s.opts.AgentPort})
	if err != nil {
		return "", fmt.Errorf("listen for vn-agent (see --agent-port): %w", err)
	}
	options := agent.DefaultOptions()
	options.Logger = s.log.WithName("vn-agent")
	options.Listener, options.CertFile, options.KeyFile = listener, certificate.File(), certificate.File()
	mgr, err := agent.New(ctx, super, options)
	if err != nil {
		_ = listener.Close()
		return "", fmt.Errorf("make vn-agent: %w", err)
	}
	crew.run("vn-agent", mgr.Start)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(s.agentHost(), port), s.await(ctx, "vn-agent", mgr)
}
