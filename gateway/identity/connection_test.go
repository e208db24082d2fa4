package identity

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestConnection: the requests of a connection are verified by what is true at
// their time.
func TestConnection(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequestWithContext(WithConnection(t.Context()), http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: client(t, w.authority, "jane")}
	at := func(later time.Duration) error {
		caller, err := Of(r, w.index, time.Now().Add(later))
		if err == nil && (caller.Of != "red-key" || caller.User.GetName() != "jane") {
			t.Errorf("got %+v", caller)
		}
		return err
	}
	for range 2 {
		if err := at(0); err != nil {
			t.Fatal(err)
		}
	}
	if at(40*time.Minute) == nil {
		t.Error("it is accepted after its end")
	}
	if at(-2*time.Hour) == nil {
		t.Error("it is accepted before its beginning")
	}
	if err := at(0); err != nil {
		t.Errorf("and then: %v", err)
	}
	w.index.Remove(types.NamespacedName{Name: "red"})
	if at(0) == nil {
		t.Error("it is accepted when the tenant has another CA, or none")
	}
}
