package provisioner_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner/provisionertest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// TestContract: Hosted does what vc-manager relies on. A restart is that of the
// process: another host on the same data.
func TestContract(t *testing.T) {
	dir, port, serial := t.TempDir(), freePort(t), 0
	stop := func() error { return nil }
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	newVirtualCluster := func() *tenancyv1alpha1.VirtualCluster {
		serial++
		return virtualCluster(fmt.Sprintf("t%d", serial))
	}
	provisionertest.Run(t, provisionertest.Case{
		New: func(context.Context) (contract.Provisioner, error) {
			if err := stop(); err != nil {
				return nil, err
			}
			host, err := hosted.Start(context.Background(), hosted.Options{Dir: dir, Port: port, UnsafeNoFsync: true})
			if err != nil {
				return nil, err
			}
			working, cancel := context.WithCancel(context.Background())
			ways := provisioner.New(working, host, provisioner.Options{Network: func(string) egress.Network { return egress.Closed{} }})
			stop = func() error {
				cancel()
				ways.Wait()
				stopping, cancel := context.WithTimeout(context.Background(), later)
				defer cancel()
				return host.Stop(stopping)
			}
			return ways, nil
		},
		VirtualCluster: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) { return newVirtualCluster(), nil },
		Invalid: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
			vc := newVirtualCluster()
			vc.Spec.KubernetesVersion = "v1.2"
			return vc, nil
		},
	})
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
