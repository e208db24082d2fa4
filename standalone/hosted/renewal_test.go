package hosted

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// TestRenewalIsTriedAgain: a disk that is full for a day, while a third of a
// certificate's life is left, ends nothing.
func TestRenewalIsTriedAgain(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, dir string) (file string, keepRenewed func(context.Context)){
		"of a server beside the control planes": func(t *testing.T, dir string) (string, func(context.Context)) {
			s, err := LoadServingCertificate(dir, "agent", nil, net.IPv4(127, 0, 0, 1))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return s.File(), func(ctx context.Context) { s.KeepRenewed(ctx, logr.Discard()) }
		},
		"of a control plane": func(t *testing.T, dir string) (string, func(context.Context)) {
			c := &ControlPlane{creds: load(t, dir, "a"), duty: newDuty()}
			return c.creds.path("kubelet-client.pem"), func(ctx context.Context) { _ = c.watch(ctx, &apiServer{}, &shift{running: &controllers.Manager{}}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				file, keepRenewed := start(t, filepath.Join(t.TempDir(), "pki"))
				go keepRenewed(t.Context())
				needsRenewal := func() bool {
					data, err := os.ReadFile(file)
					g.Expect(err).NotTo(HaveOccurred())
					certificate, _ := splitPEM(data)
					return pki.NeedsRenewal(certificate, time.Now())
				}
				pass := func(d time.Duration) {
					time.Sleep(d)
					synctest.Wait() // also for a renewal at that very time
				}
				pass(defaultValidity * 6 / 10)
				g.Expect(needsRenewal()).To(BeFalse())

				was, err := os.ReadFile(file)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.Remove(file)).To(Succeed())
				g.Expect(os.MkdirAll(filepath.Join(file, "in the way"), 0o700)).To(Succeed())
				pass(defaultValidity * 1 / 10)
				g.Expect(os.RemoveAll(file)).To(Succeed())
				g.Expect(os.WriteFile(file, was, 0o600)).To(Succeed())
				g.Expect(needsRenewal()).To(BeTrue())
				pass(longestRenewalInterval + time.Second)
				g.Expect(needsRenewal()).To(BeFalse())
			})
		})
	}
}

// TestNewNamesAreInTheCertificate: a certificate is replaced when the names change,
// and only then.
func TestNewNamesAreInTheCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		creds := load(t, filepath.Join(t.TempDir(), "pki"), "a")
		c := &ControlPlane{creds: creds, spec: Spec{Name: "a"}.withDefaults(DefaultServiceCIDR), renamed: make(chan struct{}, 1), duty: newDuty()}
		go func() { _ = c.watch(t.Context(), &apiServer{}, &shift{running: &controllers.Manager{}}) }()
		served := func() []byte {
			synctest.Wait()
			cert, _ := c.creds.CurrentCertKeyContent()
			return cert
		}
		g.Expect(c.SetExtraSANs([]string{"shop.example.com", "192.0.2.1"})).To(Succeed())
		first := served()
		g.Expect(parseCertificate(first).VerifyHostname("shop.example.com")).To(Succeed())
		g.Expect(parseCertificate(first).VerifyHostname("192.0.2.1")).To(Succeed())
		g.Expect(c.SetExtraSANs([]string{"shop.example.com", "192.0.2.1"})).To(Succeed())
		g.Expect(served()).To(Equal(first))
		g.Expect(c.SetExtraSANs(nil)).To(Succeed())
		g.Expect(parseCertificate(served()).VerifyHostname("shop.example.com")).NotTo(Succeed())
		g.Expect(parseCertificate(served()).VerifyHostname("a.vc.internal")).To(Succeed())
	})
}
