package store

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func named(members int) Store {
	return Store{Service: types.NamespacedName{Namespace: "vc-system", Name: "vc-store"}, Members: members}
}

func authorities(t *testing.T, data map[string][]byte, at time.Time) pki.Authorities {
	t.Helper()
	data, err := renewAuthorities(data, at)
	if err != nil {
		t.Fatal(err)
	}
	return pki.ParseAuthorities(data[authoritiesKey], data[authoritiesKeyKey], at)
}

// renewed renews a certificate and checks it.
func renewed(t *testing.T, c certificate, kept map[string][]byte, by pki.Authorities, at time.Time) map[string][]byte {
	t.Helper()
	data, err := c.renew(kept, by, at)
	if err != nil {
		t.Fatal(err)
	}
	pair := pki.KeyPair{CertPEM: data[certificateKey], KeyPEM: data[privateKey]}
	if !c.isGood(pair, by.Signer(at), at) {
		t.Fatal("a renewed certificate is not good")
	}
	if !bytes.Equal(data[authoritiesKey], by.CertsPEM()) || len(data) != 3 {
		t.Error("the Secret does not have the authorities, the certificate and its key")
	}
	return data
}

// TestRenew: which certificates are replaced.
func TestRenew(t *testing.T) {
	by, other := authorities(t, nil, now), authorities(t, nil, now)
	members, client := ofMembers(named(3)), ofClient()
	good := renewed(t, members, nil, by, now)
	without := func(key string) map[string][]byte {
		return map[string][]byte{certificateKey: good[certificateKey], privateKey: good[privateKey], key: nil}
	}
	for name, c := range map[string]struct {
		want certificate
		kept map[string][]byte
		by   pki.Authorities
		at   time.Time
		keep bool
	}{
		"good":                 {members, good, by, now, true},
		"two months old":       {members, good, by, now.Add(59 * day), true},
		"a third is left":      {members, good, by, now.Add(61 * day), false},
		"expired":              {members, good, by, now.Add(91 * day), false},
		"empty":                {members, nil, by, now, false},
		"another authority":    {members, good, other, now, false},
		"without a key":        {members, without(privateKey), by, now, false},
		"without certificate":  {members, without(certificateKey), by, now, false},
		"fewer members":        {ofMembers(named(1)), good, by, now, false},
		"more members":         {ofMembers(named(5)), good, by, now, false},
		"the client's":         {members, renewed(t, client, nil, by, now), by, now, false},
		"a client, of members": {client, good, by, now, false},
		"a client":             {client, renewed(t, client, nil, by, now), by, now, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := renewed(t, c.want, c.kept, c.by, c.at)
			if kept := bytes.Equal(got[certificateKey], c.kept[certificateKey]); kept != c.keep {
				t.Errorf("the certificate is kept: %t, want %t", kept, c.keep)
			}
		})
	}
}

// TestSuccessor: when a third of an authority's life is left, its successor is
// trusted, and the certificates stay.
func TestSuccessor(t *testing.T) {
	data, err := renewAuthorities(nil, now)
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(authorityValidity * 3 / 4)
	both := authorities(t, data, later)
	members := ofMembers(named(1))
	before := renewed(t, members, nil, authorities(t, data, now), later)
	after := renewed(t, members, before, both, later)
	if len(both) != 2 || !bytes.Equal(before[certificateKey], after[certificateKey]) {
		t.Errorf("%d authorities; the certificate is replaced by one of the successor, which no running member trusts", len(both))
	}
}

// TestHosts: the certificate of the members is for all of them, and no other.
func TestHosts(t *testing.T) {
	data := renewed(t, ofMembers(named(3)), nil, authorities(t, nil, now), now)
	block, _ := pem.Decode(data[certificateKey])
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"vc-store-0.vc-store.vc-system.svc": true, "vc-store-2.vc-store.vc-system.svc": true,
		"vc-store-0.vc-system.svc": true, "vc-store-2.vc-system.svc": true, "vc-store-3.vc-system.svc": false,
		"vc-store-3.vc-store.vc-system.svc": false, "vc-store.vc-system.svc": false, "localhost": false, "127.0.0.1": false,
	} {
		if err := certificate.VerifyHostname(host); (err == nil) != want {
			t.Errorf("it is for %s: %v, want %t", host, err, want)
		}
	}
	if urls := named(2).endpoints(); urls[1] != "https://vc-store-1.vc-system.svc:2379" || len(urls) != 2 {
		t.Errorf("the endpoints are %v", urls)
	}
}
