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

// Kubelet answers for the containers of a node of the super cluster, none of which exists: their commands run on this machine, and who
// attaches to one, or forwards a port to it, hears back what is said.
type Kubelet struct {
	server *httptest.Server

	mu    sync.Mutex
	asked []*url.URL
	// log is what all containers have printed. printed is closed, and made anew, when there is more.
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

// Stop ends the kubelet and what it serves.
func (k *Kubelet) Stop() {
	k.server.CloseClientConnections()
	k.server.Close()
}

// Describe puts the kubelet's address into the status of its node.
func (k *Kubelet) Describe(status *corev1.NodeStatus) {
	address := k.server.Listener.Addr().(*net.TCPAddr)
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
}

// Asked is all that it was asked for so far.
func (k *Kubelet) Asked() []*url.URL {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.asked)
}

// Print has all containers print a line.
func (k *Kubelet) Print(line string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, line+"\n"...)
	close(k.printed)
	k.printed = make(chan struct{})
}

// after is what was printed after the first bytes, and what is closed when there is more.
func (k *Kubelet) after(first int) ([]byte, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.log[first:]), k.printed
}

// serveLogs writes what was printed and, if it is to follow, what will be.
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
