package clienthello

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func servingCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	g := NewWithT(t)
	ca, err := pki.NewAuthority("ca", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Server(name, []string{name}, nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	return cert
}

func TestPeekedConnectionStillHandshakes(t *testing.T) {
	g := NewWithT(t)
	ours, theirs := net.Pipe()
	answer := make(chan string, 1)
	go func() {
		client := tls.Client(theirs, &tls.Config{ServerName: "a.vc.internal", InsecureSkipVerify: true})
		_, _ = client.Write([]byte("hi"))
		data, _ := io.ReadAll(client)
		answer <- string(data)
	}()

	name, conn, err := Peek(t.Context(), ours)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(name).To(Equal("a.vc.internal"))
	server := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{servingCertificate(t, name)}})
	question := make([]byte, 2)
	_, err = io.ReadFull(server, question)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(question)).To(Equal("hi"))
	_, err = server.Write([]byte("ho"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Close()).To(Succeed())
	g.Eventually(answer, "20s").Should(Receive(Equal("ho")))
}

func TestPeekRefusesWhatIsNoClientHello(t *testing.T) {
	for name, test := range map[string]struct {
		send     string
		patience time.Duration
	}{
		"plain HTTP":      {"GET / HTTP/1.1\r\n\r\n", time.Minute},
		"silence":         {"", 100 * time.Millisecond},
		"a router at end": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.patience)
			defer cancel()
			ours, theirs := net.Pipe()
			defer theirs.Close()
			go func() { _, _ = io.WriteString(theirs, test.send) }()
			_, conn, err := Peek(ctx, ours)
			NewWithT(t).Expect(err).To(HaveOccurred())
			_ = conn.Close()
		})
	}
}
