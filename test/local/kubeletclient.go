package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// kubeletClientName is the subject of the client certificates with which
// apiservers connect to kubelets.
const kubeletClientName = "kube-apiserver-kubelet-client"

// PKIFile returns the path of a file of a control plane's PKI. The super
// cluster is a control plane too.
func (s *SuperCluster) PKIFile(controlPlane, name string) string {
	return filepath.Join(s.Dir, "controlplanes", controlPlane, "pki", name)
}

// ReadPair reads a certificate and its key from one file.
func ReadPair(file string) (tls.Certificate, error) { return tls.LoadX509KeyPair(file, file) }

// ReadAuthority reads an authority and its key from one file.
func ReadAuthority(file string) (pki.Authority, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return pki.Authority{}, err
	}
	key := bytes.Index(data, []byte("-----BEGIN PRIVATE KEY"))
	if key <= 0 {
		return pki.Authority{}, fmt.Errorf("%s has no certificate followed by its key", file)
	}
	return pki.Authority{CertPEM: data[:key], KeyPEM: data[key:]}, nil
}

// KubeletClient issues a certificate like those with which apiservers connect
// to kubelets.
func KubeletClient(ca pki.Authority, validity time.Duration) (tls.Certificate, error) {
	pair, err := ca.Client(kubeletClientName, []string{"system:masters"}, validity, time.Now())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
}

// Reply is the response of an agent.
type Reply struct {
	Code int
	Body string
}

// ClientWithCertificate returns a client that presents a certificate to any
// server, without verifying the server or consulting the server's list of
// authorities.
func ClientWithCertificate(certificate tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify:   true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
	}}}
}

// Ask sends an agent a request for a raw path. Headers alternate names and
// values.
func Ask(ctx context.Context, c *http.Client, address, path string, headers ...string) (_ Reply, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address, nil)
	if err != nil {
		return Reply{}, err
	}
	// Opaque keeps the client from normalizing the path.
	path, request.URL.RawQuery, _ = strings.Cut(path, "?")
	request.URL.Opaque = "//" + address + path
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" { // the request line has it, and goes before the header
			request.URL.Opaque = "//" + headers[i+1] + path
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(request)
	if err != nil {
		return Reply{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, string(body)}, err
}
