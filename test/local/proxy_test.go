package local

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestProxy sends requests through a proxy that is cut, resumed and slow.
func TestProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	proxy := newProxy(t, server.URL)
	config := proxy.Config(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (string, error) {
		answer, err := client.Get(config.Host)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}

	if got, err := ask(); got != "hello" {
		t.Fatalf("got %q, %v", got, err)
	}
	proxy.Cut()
	if _, err := ask(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v from a proxy that is cut, want the connection refused", err)
	}
	if err := proxy.Resume(); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(); got != "hello" {
		t.Fatalf("got %q, %v after the resumption", got, err)
	}
	const delay = 50 * time.Millisecond
	proxy.Slow(delay, 2*delay)
	before := time.Now()
	if got, err := ask(); got != "hello" {
		t.Fatalf("got %q, %v from a slow proxy", got, err)
	}
	if took := time.Since(before); took < 2*delay {
		t.Errorf("there and back took %s, want a delay each way", took)
	}
}

// TestCutResets tests that the reader of a connection that is cut gets an error
// instead of an end of file.
func TestCutResets(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "x")
		}
	}()
	proxy := newProxy(t, listener.Addr().String())
	conn, err := net.Dial("tcp", proxy.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want the connection reset", err)
	}
}

// newProxy returns a proxy that is closed at the end of the test. A connection
// that the proxy leaks makes the test hang.
func newProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	proxy, err := NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}
