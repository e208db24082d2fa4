package tenants

import (
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func access(t *testing.T, serverName string) gatewayaccess.Access {
	t.Helper()
	authority, err := pki.NewAuthority("kubernetes", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client(gatewayaccess.User, nil, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, public, err := pki.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	return gatewayaccess.Access{
		Server: "https://10.0.0.1:6443", ServerName: serverName, CA: authority.CertPEM, ClientCA: authority.CertPEM, TokenKeys: public,
		Certificate: pair.CertPEM, Key: pair.KeyPEM,
	}
}

func tenant(t *testing.T, key string, access gatewayaccess.Access) *Tenant {
	t.Helper()
	made, err := New(key, access, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Way.Close)
	return made
}

func authorityID(t *testing.T, access gatewayaccess.Access) []byte {
	t.Helper()
	authorities, err := cert.ParseCertsPEM(access.ClientCA)
	if err != nil {
		t.Fatal(err)
	}
	return authorities[0].SubjectKeyId
}

func TestIndex(t *testing.T) {
	red, blue := types.NamespacedName{Namespace: "a", Name: "red"}, types.NamespacedName{Namespace: "a", Name: "blue"}
	i := NewIndex(red)
	if i.Default() != "" {
		t.Error("there is a default tenant before it exists")
	}
	ofRed, ofBlue := access(t, "red.vc.internal"), access(t, "")
	first := tenant(t, "red-key", ofRed)
	i.Set(red, first)
	i.Set(blue, tenant(t, "blue-key", ofBlue))
	if i.ByKey("red-key") != first || i.ByAuthority(authorityID(t, ofRed)) != first || i.ByKeyID(first.keyIDs[0]) != first ||
		i.ByServerName("RED.vc.internal") != first {
		t.Error("a tenant is not found by all that identifies it")
	}
	if i.Default() != "red-key" || i.ByServerName("") != nil {
		t.Errorf("default %q", i.Default())
	}
	if entry, found := i.Find("blue-key"); !found || !reflect.DeepEqual(entry, resolve.Entry{Key: "blue-key"}) {
		t.Errorf("got %+v", entry)
	}

	// The state of a tenant changes, and its requests go on.
	way := first.Way
	i.Set(red, tenant(t, "red-key", ofRed))
	if i.ByKey("red-key").Way != way {
		t.Error("a change of the state closes connections")
	}
	withIssuer := ofRed
	withIssuer.KeySet = []byte("{}")
	i.Set(red, tenant(t, "red-key", withIssuer))
	if now := i.ByKey("red-key"); now.Way != way || string(now.KeySet()) != "{}" {
		t.Error("documents of an issuer close connections, or are not found")
	}
	i.Set(red, tenant(t, "red-key", access(t, "red.vc.internal")))
	if i.ByAuthority(authorityID(t, ofRed)) != nil || i.ByKey("red-key").Way == way {
		t.Error("credentials that were replaced are still recognized")
	}
	i.Remove(red)
	i.Remove(red)
	if i.ByKey("red-key") != nil || i.Default() != "" || len(i.all) != 1 {
		t.Error("a tenant that was removed is still found")
	}
}

// TestExternal: the server name of an external control plane finds no tenant, and
// hides no other tenant of this name.
func TestExternal(t *testing.T) {
	i := NewIndex(types.NamespacedName{})
	ours := tenant(t, "red-key", access(t, "red.vc.internal"))
	far := access(t, "RED.vc.internal")
	far.Certificate, far.Key = nil, nil
	theirs := tenant(t, "far-key", far)
	i.Set(types.NamespacedName{Name: "far"}, theirs)
	if i.ByServerName("red.vc.internal") != nil || theirs.TakesConnections() {
		t.Error("connections are passed on to an external control plane")
	}
	i.Set(types.NamespacedName{Name: "red"}, ours)
	if i.ByServerName("red.vc.internal") != ours || !ours.TakesConnections() {
		t.Error("connections are not passed on to a control plane of the platform")
	}
	light := tenant(t, "light-key", gatewayaccess.Access{Token: []byte("a")})
	light.Converted = http.NotFoundHandler()
	if light.TakesConnections() || NewSuper(forward.NewConvertedWay(), nil, true).TakesConnections() {
		t.Error("connections are passed on without a control plane of a tenant")
	}
}

// TestAliases: an alias leads to the tenant that holds it, and never to one whose
// cluster key it could be.
func TestAliases(t *testing.T) {
	i := NewIndex(types.NamespacedName{})
	red, blue := types.NamespacedName{Name: "red"}, types.NamespacedName{Name: "blue"}
	find := func(name string) string {
		entry, _ := i.Find(name)
		return entry.Key
	}
	i.SetHolder("shop", &red)
	if find("shop") != "" {
		t.Error("an alias leads to a tenant that is not there")
	}
	i.Set(red, tenant(t, "team-0a1b2c-red", access(t, "")))
	i.Set(blue, tenant(t, "team-0a1b2c-blue", access(t, "")))
	if find("shop") != "team-0a1b2c-red" || find("team-0a1b2c-red") != "team-0a1b2c-red" {
		t.Error("a tenant is not found by its alias and its key")
	}
	i.SetHolder("team-0a1b2c-blue", &red)
	i.SetHolder("team-0a1b2c-green", &red)
	if find("team-0a1b2c-blue") != "team-0a1b2c-blue" || find("team-0a1b2c-green") != "" {
		t.Error("an alias shadows a cluster key")
	}
	i.SetHolder("shop", &blue)
	if find("shop") != "team-0a1b2c-blue" || len(i.AliasesOf(red)) != 2 {
		t.Error("the holder does not change")
	}
	i.Remove(blue)
	if find("shop") != "" {
		t.Error("the alias leads to a tenant that was removed")
	}
	i.SetHolder("shop", nil)
	if len(i.AliasesOf(blue)) != 0 {
		t.Error("an alias without a holder is kept")
	}
}

// TestVisits: a request of a member ends when the user is no longer one, and
// others go on.
func TestVisits(t *testing.T) {
	i, of := NewIndex(types.NamespacedName{}), types.NamespacedName{Name: "red"}
	const key = "team-0a1b2c-red"
	red := access(t, "")
	set := func(members ...tenancyv1alpha1.Member) {
		one := tenant(t, key, red)
		one.Members = members
		i.Set(of, one)
	}
	jane, joe := tenancyv1alpha1.Member{Kind: "User", Name: "jane"}, tenancyv1alpha1.Member{Kind: "User", Name: "joe"}
	visit := func(name string) (context.Context, func(), bool) {
		return i.Visit(t.Context(), key, &user.DefaultInfo{Name: name})
	}
	if _, _, ok := visit("jane"); ok {
		t.Error("a tenant that is not there has a member")
	}
	set(jane, joe)
	ofJane, done, ok := visit("jane")
	ofJoe, joeDone, joeOK := visit("joe")
	if _, _, isMember := visit("jack"); !ok || !joeOK || isMember {
		t.Fatal("not the members have visits")
	}
	set(joe)
	if ofJane.Err() == nil || ofJoe.Err() != nil {
		t.Errorf("jane's request: %v, joe's: %v", ofJane.Err(), ofJoe.Err())
	}
	if _, _, ok := visit("jane"); ok {
		t.Error("jane is a member still")
	}
	done()
	joeDone()
	if len(i.visits) != 0 {
		t.Errorf("visits are kept: %v", i.visits)
	}
}

// TestSharedAuthority: users of two tenants with one CA cannot be told apart.
func TestSharedAuthority(t *testing.T) {
	i, shared := NewIndex(types.NamespacedName{}), access(t, "")
	red := tenant(t, "red-key", shared)
	i.Set(types.NamespacedName{Name: "red"}, red)
	i.Set(types.NamespacedName{Name: "blue"}, tenant(t, "blue-key", shared))
	if i.ByAuthority(authorityID(t, shared)) != nil || i.ByKeyID(red.keyIDs[0]) != nil {
		t.Error("one of two tenants is chosen")
	}
	i.Remove(types.NamespacedName{Name: "blue"})
	if i.ByAuthority(authorityID(t, shared)) != red {
		t.Error("the other is not found when one is removed")
	}
}

// TestOpaque: a tenant whose keys are not known may accept any token, unless the
// gateway serves it itself. The super cluster recognizes its own.
func TestOpaque(t *testing.T) {
	i := NewIndex(types.NamespacedName{})
	i.Set(types.NamespacedName{Name: "far"}, tenant(t, "far-key", gatewayaccess.Access{Server: "https://10.0.0.1"}))
	i.Set(types.NamespacedName{Name: "light"}, tenant(t, "light-key", gatewayaccess.Access{Server: "https://10.0.0.1", Token: []byte("token")}))
	i.Set(types.NamespacedName{Name: "near"}, tenant(t, "near-key", access(t, "near")))
	i.Set(types.NamespacedName{Name: resolve.System}, NewSuper(nil, nil, true))
	for name, want := range map[string]bool{"far-key": true, "light-key": false, "near-key": false, resolve.System: false} {
		if entry, found := i.Find(name); !found || entry.Opaque != want {
			t.Errorf("%s: found %t, opaque %t", name, found, entry.Opaque)
		}
	}
}

func TestNew(t *testing.T) {
	for name, broken := range map[string]gatewayaccess.Access{
		"no URL":              {},
		"a client CA of text": {Server: "https://10.0.0.1", ClientCA: []byte("ca")},
		"keys of text":        {Server: "https://10.0.0.1", TokenKeys: []byte("keys")},
	} {
		if _, err := New("key", broken, nil, false); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
