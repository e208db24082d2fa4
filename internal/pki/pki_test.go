package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T) Authority {
	t.Helper()
	ca, err := NewAuthority("tenant", 10*year, now)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func leaf(t *testing.T, pair KeyPair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	cert, err := parseCertificate(pair.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func verify(ca Authority, cert *x509.Certificate, name string, usage x509.ExtKeyUsage, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CertPEM)
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: at,
	})
	return err
}

func TestServer(t *testing.T) {
	ca := authority(t)
	pair, err := ca.Server("kube-apiserver", []string{"kubernetes.default"}, []net.IP{net.IPv4(10, 96, 0, 1)}, year, now)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		ca    Authority
		name  string
		usage x509.ExtKeyUsage
		at    time.Time
		ok    bool
	}{
		"Name":         {ca, "kubernetes.default", x509.ExtKeyUsageServerAuth, now, true},
		"Address":      {ca, "10.96.0.1", x509.ExtKeyUsageServerAuth, now, true},
		"ClockBehind":  {ca, "10.96.0.1", x509.ExtKeyUsageServerAuth, now.Add(-time.Minute), true},
		"OtherName":    {ca, "kubernetes.example", x509.ExtKeyUsageServerAuth, now, false},
		"AsClient":     {ca, "10.96.0.1", x509.ExtKeyUsageClientAuth, now, false},
		"Expired":      {ca, "10.96.0.1", x509.ExtKeyUsageServerAuth, now.Add(year + time.Second), false},
		"OtherTenants": {authority(t), "10.96.0.1", x509.ExtKeyUsageServerAuth, now, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := verify(tc.ca, leaf(t, pair), tc.name, tc.usage, tc.at); (err == nil) != tc.ok {
				t.Errorf("verified: %v, want ok: %v", err, tc.ok)
			}
		})
	}
}

func TestClient(t *testing.T) {
	ca := authority(t)
	pair, err := ca.Client("admin", []string{"ops", "system:masters"}, year, now)
	if err != nil {
		t.Fatal(err)
	}
	cert := leaf(t, pair)
	if err := verify(ca, cert, "", x509.ExtKeyUsageClientAuth, now); err != nil {
		t.Error(err)
	}
	if err := verify(ca, cert, "", x509.ExtKeyUsageServerAuth, now); err == nil {
		t.Error("a client's certificate must not serve")
	}
	if cert.Subject.CommonName != "admin" || !slices.Equal(cert.Subject.Organization, []string{"ops", "system:masters"}) {
		t.Errorf("subject is %s", cert.Subject)
	}
	if cert.IsCA {
		t.Error("a client's certificate must not sign")
	}
}

func TestLeafEndsWithItsAuthority(t *testing.T) {
	ca, err := NewAuthority("tenant", time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Client("admin", nil, year, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := leaf(t, pair).NotAfter, now.Add(time.Hour); !got.Equal(want) {
		t.Errorf("the leaf ends at %s, its authority at %s", got, want)
	}
}

func TestSerialNumbersDiffer(t *testing.T) {
	ca := authority(t)
	seen := map[string]bool{}
	for range 20 {
		pair, err := ca.Client("admin", nil, year, now)
		if err != nil {
			t.Fatal(err)
		}
		seen[leaf(t, pair).SerialNumber.String()] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d serial numbers for 20 certificates", len(seen))
	}
}

func TestNeedsRenewal(t *testing.T) {
	pair, err := authority(t).Client("admin", nil, 90*24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		cert []byte
		at   time.Time
		want bool
	}{
		"New":           {pair.CertPEM, now, false},
		"MoreThanThird": {pair.CertPEM, now.Add(59 * 24 * time.Hour), false},
		"LessThanThird": {pair.CertPEM, now.Add(61 * 24 * time.Hour), true},
		"Expired":       {pair.CertPEM, now.Add(91 * 24 * time.Hour), true},
		"Empty":         {nil, now, true},
		"NotPEM":        {[]byte("certificate"), now, true},
		"KeyInstead":    {pair.KeyPEM, now, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NeedsRenewal(tc.cert, tc.at); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNewSigningKey(t *testing.T) {
	private, public, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := parseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(public)
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(parsed) {
		t.Error("the public key is not the private key's")
	}
}

func TestBadAuthority(t *testing.T) {
	good, other := authority(t), authority(t)
	cases := map[string]struct {
		ca   Authority
		want string
	}{
		"Empty":          {Authority{}, "no certificate"},
		"NoKey":          {Authority{CertPEM: good.CertPEM}, "no private key"},
		"KeyOfAnother":   {Authority{CertPEM: good.CertPEM, KeyPEM: other.KeyPEM}, "does not belong"},
		"BrokenKey":      {Authority{CertPEM: good.CertPEM, KeyPEM: encode(blockPrivateKey, []byte("x"))}, "PKCS #8"},
		"BrokenCert":     {Authority{CertPEM: encode(blockCertificate, []byte("x")), KeyPEM: good.KeyPEM}, "parse certificate"},
		"KeyAsAuthority": {Authority{CertPEM: good.KeyPEM, KeyPEM: good.KeyPEM}, "no certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.ca.Client("admin", nil, year, now)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestValidityMustBePositive(t *testing.T) {
	if _, err := NewAuthority("tenant", 0, now); err == nil {
		t.Error("an authority without a life")
	}
	if _, err := authority(t).Client("admin", nil, -time.Hour, now); err == nil {
		t.Error("a certificate without a life")
	}
}

func TestExpiredAuthoritySignsNothing(t *testing.T) {
	_, err := authority(t).Client("admin", nil, year, now.Add(11*year))
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v, want an error that says so", err)
	}
}
