package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward forwards a free port of the loopback address to a pod of the super
// cluster until stop is called, and returns its address.
func Forward(ctx context.Context, super *rest.Config, to Backend) (address string, stop func() error, err error) {
	dialer, err := newDialer(super, to)
	if err != nil {
		return "", nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	ended := make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", to.Port)},
		running.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return "", nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return "", nil, fmt.Errorf("forward a port to pod %s/%s: %w", to.Namespace, to.Pod, err)
	case <-ctx.Done():
		return "", nil, errors.Join(ctx.Err(), stop())
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), stop, nil
}

// newDialer opens streams to a pod, by WebSocket or, for apiservers that do not
// support it, SPDY.
func newDialer(super *rest.Config, to Backend) (httpstream.Dialer, error) {
	clients, err := kubernetes.NewForConfig(super)
	if err != nil {
		return nil, err
	}
	target := clients.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(to.Namespace).Name(to.Pod).SubResource("portforward").URL()
	older, err := newSPDYDialer(super, target)
	if err != nil {
		return nil, err
	}
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, super)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

func newSPDYDialer(super *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(super)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target), nil
}
