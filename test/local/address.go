package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress returns an address for a server that is started with it.
func FreeAddress(ctx context.Context) (string, error) {
	listener, err := listenAnywhere(ctx)
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// freePorts returns different ports of such addresses.
func freePorts(ctx context.Context, number int) (free []string, err error) {
	for range number {
		listener, err := listenAnywhere(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		free = append(free, port)
	}
	return free, nil
}

// listenAnywhere listens on a free port of the loopback interface. It is outside the
// range of ephemeral ports, so that no client of another process takes it while no
// server listens there.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	const first, count, attempts = 20000, 10000, 100
	var last error
	for range attempts {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", loopback, first+rand.IntN(count)))
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, errors.Join(errors.New("find a free port"), last)
}
