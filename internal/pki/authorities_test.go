package pki

import (
	"bytes"
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

func renewed(t *testing.T, all Authorities, at time.Time) Authorities {
	t.Helper()
	next, err := ParseAuthorities(all.CertsPEM(), all.KeysPEM(), at).Renew("store", 12*year, at)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestAuthorities: a successor is trusted four years before the end of an
// authority of twelve years, and signs two years before.
func TestAuthorities(t *testing.T) {
	first := renewed(t, nil, now)
	both := renewed(t, first, now.Add(9*year))
	for name, c := range map[string]struct {
		kept    Authorities
		at      time.Time
		trusted int
		first   bool // whether the first one signs
	}{
		"new":                 {first, now, 1, true},
		"in its seventh year": {first, now.Add(7 * year), 1, true},
		"a third is left":     {first, now.Add(8*year + time.Hour), 2, true},
		"a quarter is left":   {both, now.Add(9 * year), 2, true},
		"a sixth is left":     {both, now.Add(10*year + time.Hour), 2, false},
		"the first expired":   {both, now.Add(12*year + time.Hour), 1, false},
		"all expired":         {both, now.Add(22 * year), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := renewed(t, c.kept, c.at)
			if len(got) != c.trusted {
				t.Errorf("%d authorities, want %d", len(got), c.trusted)
			}
			if signs := bytes.Equal(got.Signer(c.at).CertPEM, first[0].CertPEM); signs != c.first {
				t.Errorf("the first one signs: %t, want %t", signs, c.first)
			}
			if again := renewed(t, got, c.at); !bytes.Equal(again.CertsPEM(), got.CertsPEM()) || !bytes.Equal(again.KeysPEM(), got.KeysPEM()) {
				t.Error("authorities that were just renewed are renewed again")
			}
		})
	}
}

// TestParseAuthorities: authorities that cannot sign are none.
func TestParseAuthorities(t *testing.T) {
	good, other := authority(t), authority(t)
	server, err := good.Server("server", nil, nil, year, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		certs, keys []byte
		want        int
	}{
		"none":               {nil, nil, 0},
		"one":                {good.CertPEM, good.KeyPEM, 1},
		"two":                {slices.Concat(good.CertPEM, other.CertPEM), slices.Concat(good.KeyPEM, other.KeyPEM), 2},
		"a key is missing":   {slices.Concat(good.CertPEM, other.CertPEM), good.KeyPEM, 1},
		"another's key":      {good.CertPEM, other.KeyPEM, 0},
		"garbage":            {[]byte("a"), []byte("b"), 0},
		"not an authority":   {server.CertPEM, server.KeyPEM, 0},
		"the wrong order":    {slices.Concat(good.CertPEM, other.CertPEM), slices.Concat(other.KeyPEM, good.KeyPEM), 0},
		"keys are exchanged": {good.KeyPEM, good.CertPEM, 0},
	} {
		if got := ParseAuthorities(c.certs, c.keys, now); len(got) != c.want {
			t.Errorf("%s: %d authorities, want %d", name, len(got), c.want)
		}
	}
}

func TestPeer(t *testing.T) {
	ca := authority(t)
	pair, err := ca.Peer("etcd", []string{"etcd-0.etcd"}, year, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := verify(ca, leaf(t, pair), "etcd-0.etcd", usage, now); err != nil {
			t.Error(err)
		}
	}
	if verify(ca, leaf(t, pair), "etcd-1.etcd", x509.ExtKeyUsageServerAuth, now) == nil {
		t.Error("it is good for another name")
	}
}
