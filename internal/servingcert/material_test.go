package servingcert

import (
	"bytes"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hosts = Hosts{DNSNames: []string{"webhook.vc-system.svc"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
)

// equal reports whether two materials are the same.
func (m material) equal(other material) bool {
	return maps.EqualFunc(m.data(), other.data(), bytes.Equal)
}

func renew(t *testing.T, m material, at time.Time) material {
	t.Helper()
	renewed, err := m.renew(hosts, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed.check(hosts, at); err != nil {
		t.Fatalf("the renewed certificate does not serve: %v", err)
	}
	again, err := renewed.renew(hosts, at)
	if err != nil || !again.equal(renewed) {
		t.Fatalf("what was just renewed is renewed again (%v)", err)
	}
	return renewed
}

// TestRenew: what is kept and what is replaced of the content of a Secret.
func TestRenew(t *testing.T) {
	good, foreign := renew(t, material{}, now), renew(t, material{}, now)
	otherNames, err := material{}.renew(Hosts{DNSNames: []string{"other"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*material)) material {
		m := good
		change(&m)
		return m
	}
	client, err := pki.Authority{CertPEM: good.authorities, KeyPEM: good.authorityKey}.Client("admin", nil, validity, now)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		kept               material
		at                 time.Time
		authority, serving bool // whether they are replaced
	}{
		"good":                           {good, now, false, false},
		"two months old":                 {good, now.Add(59 * day), false, false},
		"a third of its life is left":    {good, now.Add(61 * day), false, true},
		"expired":                        {good, now.Add(91 * day), false, true},
		"empty":                          {material{}, now, true, true},
		"garbage":                        {material{[]byte("a"), []byte("b"), pki.KeyPair{CertPEM: []byte("c"), KeyPEM: []byte("d")}}, now, true, true},
		"for other names":                {otherNames, now, false, true},
		"no certificate":                 {with(func(m *material) { m.serving.CertPEM = nil }), now, false, true},
		"another key":                    {with(func(m *material) { m.serving.KeyPEM = foreign.serving.KeyPEM }), now, false, true},
		"of a foreign authority":         {with(func(m *material) { m.serving = foreign.serving }), now, false, true},
		"for clients":                    {with(func(m *material) { m.serving = client }), now, false, true},
		"no key of the authority":        {with(func(m *material) { m.authorityKey = nil }), now, true, true},
		"another key of the authority":   {with(func(m *material) { m.authorityKey = foreign.authorityKey }), now, true, true},
		"another authority":              {with(func(m *material) { m.authorities = foreign.authorities }), now, true, true},
		"the authority is none":          {with(func(m *material) { m.authorities, m.authorityKey = m.serving.CertPEM, m.serving.KeyPEM }), now, true, true},
		"the authority is about to end":  {good, now.Add(authorityValidity * 3 / 4), true, true},
		"the authority has expired":      {good, now.Add(authorityValidity + day), true, true},
		"before the clock was corrected": {good, now.Add(-day), true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			renewed := renew(t, tt.kept, tt.at)
			if got := !bytes.HasPrefix(renewed.authorities, tt.kept.authorities) || len(tt.kept.authorities) == 0; got != tt.authority {
				t.Errorf("the authority is replaced: %t, want %t", got, tt.authority)
			}
			if got := !bytes.Equal(renewed.serving.CertPEM, tt.kept.serving.CertPEM); got != tt.serving {
				t.Errorf("the certificate is replaced: %t, want %t", got, tt.serving)
			}
		})
	}
}

// TestSuccessor: clients trust an authority and its successor, until the first
// has expired.
func TestSuccessor(t *testing.T) {
	old := renew(t, material{}, now)
	late := now.Add(authorityValidity * 3 / 4)
	both := renew(t, old, late)
	if got := certificates(both.authorities); len(got) != 2 || !bytes.Equal(encode(got[1]), old.authorities) {
		t.Errorf("%d authorities are trusted, want the new and the old one", len(got))
	}
	if got := certificates(renew(t, both, now.Add(authorityValidity+day)).authorities); len(got) != 1 {
		t.Errorf("%d authorities are trusted after the first has expired, want one", len(got))
	}
}

// TestSecret: what is written is read again.
func TestSecret(t *testing.T) {
	m := renew(t, material{}, now)
	if !read(m.data()).equal(m) {
		t.Error("it is not what was written")
	}
}
