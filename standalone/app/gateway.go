package app

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/egress"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// gatewayDir holds the gateway's serving certificate in the data directory.
const gatewayDir = "vc-gateway"

// frontDoor is where the gateway of this process serves.
type frontDoor struct {
	listeners   []net.Listener
	certificate *hosted.ServingCertificate
}

// openGateway opens the port of the gateway; nil without one.
func (s *standalone) openGateway() (*frontDoor, error) {
	if !s.opts.Gateway {
		return nil, nil
	}
	host := s.agentHost()
	addresses := []net.IP{net.ParseIP(host)}
	if s.node != nil {
		addresses = append(addresses, s.node.HostAddress())
	}
	certificate, err := hosted.LoadServingCertificate(s.dir.File(gatewayDir), gatewayDir, []string{gatewayDir, "localhost"}, addresses...)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(s.opts.Listen), Port: s.opts.chooseGatewayPort(s.dir.GatewayPort())})
	if err != nil {
		return nil, fmt.Errorf("listen for vc-gateway (see --gateway-port): %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err == nil {
		err = s.rememberGatewayPort(port)
	}
	door := &frontDoor{listeners: []net.Listener{listener}, certificate: certificate}
	s.opts.ManagerOptions.Gateway = virtualcluster.Gateway{
		URL: "https://" + net.JoinHostPort(host, port), CAFile: certificate.CAFile(),
	}
	if err == nil && s.node != nil {
		s.opts.ManagerOptions.Gateway.PodURL, err = door.listenForPods(s.node.HostAddress())
	}
	if err != nil {
		door.close()
		return nil, err
	}
	return door, nil
}

// listenForPods opens a port for pods of a real node, and returns its URL.
func (f *frontDoor) listenForPods(address net.IP) (url string, err error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: address})
	if err != nil {
		return "", fmt.Errorf("listen for clients of vc-gateway in pods: %w", err)
	}
	f.listeners = append(f.listeners, listener)
	return "https://" + listener.Addr().String(), nil
}

// rememberGatewayPort keeps the port for the next start.
func (s *standalone) rememberGatewayPort(port string) error {
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port of vc-gateway: %w", err)
	}
	return s.dir.RememberGatewayPort(number)
}

// close closes the ports, which the gateway has closed if it ran.
func (f *frontDoor) close() {
	if f == nil {
		return
	}
	for _, listener := range f.listeners {
		_ = listener.Close()
	}
}

// startGateway runs vc-gateway, if it has a port. The policy says what it connects
// to for converted tenants.
func (s *standalone) startGateway(ctx context.Context, crew *crew, super *rest.Config, door *frontDoor, policy *egress.Policy) error {
	if door == nil {
		return nil
	}
	crew.run("the renewal of the certificate of vc-gateway", func(ctx context.Context) error {
		door.certificate.KeepRenewed(ctx, s.log.WithName("vc-gateway"))
		return nil
	})
	options := s.opts.GatewayOptions
	options.Logger, options.Egress = s.log.WithName("vc-gateway"), policy
	options.Listeners, options.CertFile, options.KeyFile = door.listeners, door.certificate.File(), door.certificate.File()
	mgr, err := gateway.New(super, options)
	if err != nil {
		return fmt.Errorf("make vc-gateway: %w", err)
	}
	crew.run("vc-gateway", mgr.Start)
	return s.await(ctx, "vc-gateway", mgr)
}
