package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

const validity = 24 * time.Hour

// serveEtcd runs an etcd in this process, with the options that a host uses.
func serveEtcd(ctx context.Context, dir string) error {
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: etcdSocket(dir)}}
	config.ListenPeerUrls = nil
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	<-server.Server.ReadyNotify()
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}

func etcdSocket(dir string) string { return filepath.Join(dir, "etcd.sock") }

// serveAPIServer runs upstream's kube-apiserver in this process.
func serveAPIServer(ctx context.Context, args []string) error {
	command := app.NewAPIServerCommand()
	command.SetArgs(args)
	command.SetContext(ctx)
	return command.Execute()
}

// startUpstream starts an etcd and a kube-apiserver, each as a child, and
// returns the configuration of an admin's client when both are ready.
func startUpstream(ctx context.Context, dir string) (config *rest.Config, end func(), err error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, nil, err
	}
	creds, err := newCredentials(dir)
	if err != nil {
		return nil, nil, err
	}
	_, endEtcd, err := startReady(ctx, etcdChild, dir)
	if err != nil {
		return nil, nil, err
	}
	_, endServer, err := startChild(ctx, append([]string{apiserverChild}, apiserverFlags(dir, port)...)...)
	if err != nil {
		endEtcd()
		return nil, nil, err
	}
	end = func() { endServer(); endEtcd() }
	config = &rest.Config{Host: "https://127.0.0.1:" + strconv.Itoa(port), TLSClientConfig: creds, QPS: -1}
	if err := awaitServer(ctx, config); err != nil {
		end()
		return nil, nil, err
	}
	return config, end, nil
}

func apiserverFlags(dir string, port int) []string {
	file := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"--etcd-servers=unix://" + etcdSocket(dir),
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + file("server.crt"), "--tls-private-key-file=" + file("server.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.pub"), "--service-account-signing-key-file=" + file("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC", "--allow-privileged",
	}
}

// newCredentials writes the files of the apiserver's flags, and returns an
// admin's credentials.
func newCredentials(dir string) (rest.TLSClientConfig, error) {
	now := time.Now()
	authority, err := pki.NewAuthority("bench", validity, now)
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	server, err := authority.Server("kube-apiserver", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, validity, now)
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	admin, err := authority.Client("admin", []string{"system:masters"}, validity, now)
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	var errs []error
	for name, data := range map[string][]byte{
		"ca.crt": authority.CertPEM, "server.crt": server.CertPEM, "server.key": server.KeyPEM, "sa.key": private, "sa.pub": public,
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return rest.TLSClientConfig{CAData: authority.CertPEM, CertData: admin.CertPEM, KeyData: admin.KeyPEM}, errors.Join(errs...)
}

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

func awaitServer(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return until(ctx, poll, "kube-apiserver is ready", func() (bool, error) {
		err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return err == nil, err
	})
}
