package servingcert

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	return renewBy(t, m, "", at)
}

// renewBy renews a material that is written and read again, after a step.
func renewBy(t *testing.T, m material, step Step, at time.Time) material {
	t.Helper()
	renewed, err := read(m.data(), at).renew(hosts, step, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed.check(hosts, at); err != nil {
		t.Fatalf("the renewed certificate does not serve: %v", err)
	}
	again, err := read(renewed.data(), at).renew(hosts, "", at)
	if err != nil || !again.equal(renewed) {
		t.Fatalf("what was just renewed is renewed again (%v)", err)
	}
	return renewed
}

// TestRenew: what is kept and what is replaced of the content of a Secret.
func TestRenew(t *testing.T) {
	good, foreign := renew(t, material{}, now), renew(t, material{}, now)
	otherNames, err := material{}.renew(Hosts{DNSNames: []string{"other"}}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	garbage := material{authorities{signer: pki.Authority{CertPEM: []byte("a"), KeyPEM: []byte("b")}}, pki.KeyPair{CertPEM: []byte("c"), KeyPEM: []byte("d")}}
	with := func(change func(*material)) material {
		m := good
		change(&m)
		return m
	}
	client, err := good.signer.Client("admin", nil, validity, now)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		kept               material
		at                 time.Time
		authority, serving bool // whether they are replaced
	}{
		"good":                         {good, now, false, false},
		"two months old":               {good, now.Add(59 * day), false, false},
		"a third of its life is left":  {good, now.Add(61 * day), false, true},
		"expired":                      {good, now.Add(91 * day), false, true},
		"empty":                        {material{}, now, true, true},
		"garbage":                      {garbage, now, true, true},
		"for other names":              {otherNames, now, false, true},
		"no certificate":               {with(func(m *material) { m.serving.CertPEM = nil }), now, false, true},
		"another key":                  {with(func(m *material) { m.serving.KeyPEM = foreign.serving.KeyPEM }), now, false, true},
		"of a foreign authority":       {with(func(m *material) { m.serving = foreign.serving }), now, false, true},
		"for clients":                  {with(func(m *material) { m.serving = client }), now, false, true},
		"no key of the authority":      {with(func(m *material) { m.signer.KeyPEM = nil }), now, true, true},
		"another key of the authority": {with(func(m *material) { m.signer.KeyPEM = foreign.signer.KeyPEM }), now, true, true},
		"another authority":            {with(func(m *material) { m.signer.CertPEM = foreign.signer.CertPEM }), now, true, true},
		"the authority is none":        {with(func(m *material) { m.signer = pki.Authority(m.serving) }), now, true, true},
		"a quarter of the authority's life is left": {good, now.Add(authorityValidity * 3 / 4), false, true},
		"a tenth of the authority's life is left":   {good, now.Add(authorityValidity * 9 / 10), true, true},
		"the authority has expired":                 {good, now.Add(authorityValidity + day), true, true},
		"before the clock was corrected":            {good, now.Add(-day), true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			renewed := renew(t, tt.kept, tt.at)
			if got := !bytes.Equal(renewed.signer.CertPEM, tt.kept.signer.CertPEM); got != tt.authority {
				t.Errorf("the authority is replaced: %t, want %t", got, tt.authority)
			}
			if got := !bytes.Equal(renewed.serving.CertPEM, tt.kept.serving.CertPEM); got != tt.serving {
				t.Errorf("the certificate is replaced: %t, want %t", got, tt.serving)
			}
		})
	}
}

// rotation is a step, and what is trusted after it.
type rotation struct {
	name    string
	step    Step
	at      time.Time
	signer  int   // by its number in the order in which the authorities were made
	trusted []int // the signer first
}

// follow takes steps one after the other.
func follow(t *testing.T, steps []rotation) {
	m, made := material{}, [][]byte{}
	number := func(certificate []byte) int {
		i := slices.IndexFunc(made, func(each []byte) bool { return bytes.Equal(each, certificate) })
		if i < 0 {
			i, made = len(made), append(made, certificate)
		}
		return i
	}
	for _, each := range steps {
		m = renewBy(t, m, each.step, each.at)
		var trusted []int
		for _, certificate := range certificates(m.trusted()) {
			trusted = append(trusted, number(encode(certificate)))
		}
		if diff := cmp.Diff(each.trusted, trusted); diff != "" {
			t.Errorf("%s: trusted are (-want +got):\n%s", each.name, diff)
		}
		if got := number(m.signer.CertPEM); got != each.signer {
			t.Errorf("%s: number %d signs, want %d", each.name, got, each.signer)
		}
	}
}

// TestRotation: a successor is trusted before it signs, and who signed before it
// as long as that is valid.
func TestRotation(t *testing.T) {
	after := func(twelfths int64) time.Time {
		return now.Add(time.Duration(int64(authorityValidity) / 12 * twelfths))
	}
	follow(t, []rotation{
		{"new", "", now, 0, []int{0}},
		{"in the middle", "", after(6), 0, []int{0}},
		{"a quarter is left", "", after(9), 0, []int{0, 1}},
		{"a twelfth is left", "", after(11), 1, []int{1, 0}},
		{"the first expired", "", after(13), 1, []int{1}},
	})
}

// TestSteps: an admin rotates at once, in steps that do nothing out of their order.
func TestSteps(t *testing.T) {
	follow(t, []rotation{
		{"new", "", now, 0, []int{0}},
		{"too early", Switch, now, 0, []int{0}},
		{"before anything", Finish, now, 0, []int{0}},
		{"started", Start, now, 0, []int{0, 1}},
		{"started again", Start, now, 0, []int{0, 1}},
		{"finished too early", Finish, now, 0, []int{0, 1}},
		{"switched", Switch, now, 1, []int{1, 0}},
		{"switched again", Switch, now, 1, []int{1, 0}},
		{"started before the end", Start, now, 1, []int{1, 2, 0}},
		{"switched before the end", Switch, now, 2, []int{2, 1, 0}},
		{"finished", Finish, now, 2, []int{2}},
	})
}

// TestLostSigner: without the signer, the successor signs, which clients trust.
func TestLostSigner(t *testing.T) {
	m := renewBy(t, renew(t, material{}, now), Start, now)
	data := m.data()
	delete(data, authorityKeyKey)
	if got := renew(t, read(data, now), now); !bytes.Equal(got.trusted(), m.successor.CertPEM) {
		t.Error("the successor does not sign alone")
	}
}

func TestStepCheck(t *testing.T) {
	none := authorities{}
	started := authorities{successor: pki.Authority{CertPEM: []byte("a")}}
	for name, tt := range map[string]struct {
		step Step
		have authorities
		want string
	}{
		"none":                   {"", none, ""},
		"start":                  {Start, none, ""},
		"start again":            {Start, started, ""},
		"switch":                 {Switch, started, ""},
		"switch without a start": {Switch, none, "set it to Start first"},
		"finish":                 {Finish, none, ""},
		"another word":           {"start", none, `is "start": it must be Start, Switch or Finish`},
	} {
		err := tt.step.check(tt.have)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
