package local

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	streamIdle     = 10 * time.Minute
	streamCreation = 30 * time.Second
)

// Kubelet serves the kubelet API for a node of the super cluster without
// containers: exec runs commands on this machine, attach and port-forward echo
// their input.
type Kubelet struct {
	server *httptest.Server

	mu    sync.Mutex
	asked []*url.URL
	// log is the output of all containers. printed is closed and replaced when
	// there is more.
	log     []byte
	printed chan struct{}
}

// StartKubelet starts a kubelet on the loopback address.
func StartKubelet() *Kubelet {
	k := &Kubelet{printed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", servePortForward)
	k.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		k.asked = append(k.asked, r.URL)
		k.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	return k
}

// Stop stops the kubelet and closes its connections.
func (k *Kubelet) Stop() {
	k.server.CloseClientConnections()
	k.server.Close()
}

// Describe sets the kubelet's address in the status of its node.
func (k *Kubelet) Describe(status *corev1.NodeStatus) {
	address := k.server.Listener.Addr().(*net.TCPAddr)
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
}

// Requests returns the URLs of all requests so far.
func (k *Kubelet) Requests() []*url.URL {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.asked)
}

// Print appends a line to the output of all containers.
func (k *Kubelet) Print(line string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, line+"\n"...)
	close(k.printed)
	k.printed = make(chan struct{})
}

// after returns the output after the first bytes, and a channel that is closed
// when there is more.
func (k *Kubelet) after(first int) ([]byte, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.log[first:]), k.printed
}

// serveLogs writes the output so far and, with follow, all later output.
func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	for written := 0; ; {
		more, printed := k.after(written)
		written += len(more)
		if _, err := w.Write(more); err != nil {
			return
		}
		if r.URL.Query().Get("follow") != "true" {
			return
		}
		if len(more) > 0 {
			w.(http.Flusher).Flush()
		}
		select {
		case <-printed:
		case <-r.Context().Done():
			return
		}
	}
}

func serveExec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, containers{}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func serveAttach(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, containers{}, r.PathValue("pod"), "", r.PathValue("container"), options,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func servePortForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, containers{}, r.PathValue("pod"), "", options, streamIdle, streamCreation, portforward.SupportedProtocols)
}
