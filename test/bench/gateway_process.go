package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// gatewaySecret is where the measured gateway keeps its certificate.
const gatewaySecret = "vc-gateway-tls"

// gateway is the measured vc-gateway, a process of its own.
type gateway struct {
	process *child
	log     *os.File
	address string
	roots   *x509.CertPool
}

// startGateway starts a gateway with the shipped roles, and waits for its
// certificate.
func (w *world) startGateway(ctx context.Context) (_ *gateway, err error) {
	w.progress.sayf("starting vc-gateway")
	config, err := w.super.GatewayAccount(ctx)
	if err != nil {
		return nil, fmt.Errorf("grant the gateway its permissions: %w", err)
	}
	kubeconfig := filepath.Join(w.dir, "gateway.kubeconfig")
	if err := writeKubeconfig(kubeconfig, config); err != nil {
		return nil, fmt.Errorf("write the gateway's kubeconfig: %w", err)
	}
	g := &gateway{}
	if g.address, err = local.FreeAddress(ctx); err != nil {
		return nil, err
	}
	if g.log, err = os.Create(filepath.Join(w.results, "vc-gateway.log")); err != nil {
		return nil, fmt.Errorf("create the gateway's log: %w", err)
	}
	command := exec.Command(filepath.Join(w.opts.Binaries, "vc-gateway"),
		"--kubeconfig", kubeconfig, "--bind-address", g.address, "--tls-secret", rbac.Namespace+"/"+gatewaySecret, "--tls-hosts", "127.0.0.1",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	command.Stdout, command.Stderr = g.log, g.log
	if g.process, err = startChild(command); err != nil {
		return nil, errors.Join(err, g.log.Close())
	}
	if err := g.await(ctx, w.super.Client); err != nil {
		return nil, errors.Join(err, g.stop())
	}
	return g, nil
}

// await waits until the gateway serves with the certificate of its Secret, which is
// empty for a moment after it was created.
func (g *gateway) await(ctx context.Context, super client.Client) error {
	ctx, cancel := g.process.while(ctx)
	defer cancel()
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		last = g.connect(ctx, super)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the gateway: %w", errors.Join(err, last, context.Cause(ctx)))
	}
	return nil
}

func (g *gateway) connect(ctx context.Context, super client.Client) error {
	secret := &corev1.Secret{}
	if err := super.Get(ctx, client.ObjectKey{Namespace: rbac.Namespace, Name: gatewaySecret}, secret); err != nil {
		return err
	}
	g.roots = x509.NewCertPool()
	g.roots.AppendCertsFromPEM(secret.Data[servingcert.AuthoritiesKey])
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: g.roots}}).DialContext(ctx, "tcp", g.address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// usage returns the resource usage of the gateway so far.
func (g *gateway) usage() (measure.Usage, error) { return measure.UsageOf(g.process.Process.Pid) }

// stop terminates the gateway and waits for it.
func (g *gateway) stop() error {
	err := g.process.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { _ = g.process.Process.Kill() })
	defer late.Stop()
	<-g.process.ended
	return errors.Join(err, g.log.Close())
}
