package kit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// passthrough is a configuration of HAProxy as its Ingress controllers write it for
// an Ingress with TLS passthrough: by the server name of the client hello.
const passthrough = `
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend tls
  bind %s
  tcp-request inspect-delay 5s
  tcp-request content accept if { req.ssl_hello_type 1 }
  use_backend control-planes if { req.ssl_sni -m end .%s }
backend control-planes
  server control-planes %s
`

// StartHAProxy starts HAProxy in front of control planes with names below a
// domain, until the end of the spec or of its container, and returns its address.
// It skips the specs on a machine without HAProxy.
func StartHAProxy(ctx context.Context, domain, backend string) string {
	GinkgoHelper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		Skip("there is no haproxy: install the package haproxy to test TLS passthrough")
	}
	address, file := FreeAddress(ctx), filepath.Join(TempDir(), "haproxy.cfg")
	Expect(os.WriteFile(file, fmt.Appendf(nil, passthrough, address, domain, backend), 0o600)).To(Succeed())
	session, err := gexec.Start(exec.Command(program, "-db", "-f", file), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Terminate().Wait(Soon) })
	Eventually(func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(Succeed())
	return address
}
