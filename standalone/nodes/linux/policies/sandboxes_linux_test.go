package policies

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestSandboxes tests that a pod whose sandbox is recreated has the address of
// the new one, whatever the order of the events.
func TestSandboxes(t *testing.T) {
	changes := 0
	s := &sandboxes{changed: func() { changes++ }, of: map[types.UID]sandbox{}}
	event := func(kind runtimeapi.ContainerEventType, container, sandbox, address string) {
		s.note(&runtimeapi.ContainerEventResponse{
			ContainerEventType: kind, ContainerId: container,
			PodSandboxStatus: &runtimeapi.PodSandboxStatus{
				Id: sandbox, Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid"}, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: address},
			},
		})
	}
	const made, deleted = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
	for i, step := range []struct {
		kind                        runtimeapi.ContainerEventType
		container, sandbox, address string
		want                        string
	}{
		{made, "host", "host", "", "invalid IP"},
		{made, "one", "one", "10.0.0.1", "10.0.0.1"},
		{deleted, "its container", "one", "10.0.0.1", "10.0.0.1"},
		{made, "two", "two", "10.0.0.2", "10.0.0.2"},
		{deleted, "one", "one", "10.0.0.1", "10.0.0.2"},
		{deleted, "two", "two", "10.0.0.2", "invalid IP"},
	} {
		event(step.kind, step.container, step.sandbox, step.address)
		if got := s.address("uid"); got.String() != step.want {
			t.Errorf("after step %d, the pod is at %s, want %s", i, got, step.want)
		}
	}
	if changes != 2 {
		t.Errorf("%d changes, want one for each sandbox with an address", changes)
	}
	if s.address("other") != (netip.Addr{}) {
		t.Error("another pod has an address")
	}
}

// runtimeService is a container runtime that sends the test's events.
type runtimeService struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	events chan *runtimeapi.ContainerEventResponse
}

func (r *runtimeService) GetContainerEvents(
	_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse],
) error {
	for {
		select {
		case event, open := <-r.events:
			if !open {
				return nil
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// serve runs the runtime at a socket until it is stopped.
func (r *runtimeService) serve(t *testing.T, socket string) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	go func() { _ = server.Serve(listener) }() // ends with the server
	t.Cleanup(server.Stop)
	return server
}

// TestFollow tests that the enforcer reconnects to the runtime, and forgets
// earlier addresses, since a pod may have another one by then.
func TestFollow(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "runtime.sock")
	s := &sandboxes{changed: func() {}, of: map[types.UID]sandbox{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.follow(ctx, "unix://"+socket, logr.Discard()) }() // ends with ctx
	created := func(uid, address string) *runtimeapi.ContainerEventResponse {
		return &runtimeapi.ContainerEventResponse{
			ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT,
			PodSandboxStatus: &runtimeapi.PodSandboxStatus{
				Id: uid, Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: address},
			},
		}
	}
	runtime := &runtimeService{events: make(chan *runtimeapi.ContainerEventResponse)}
	first := runtime.serve(t, socket) // comes later than the first attempt
	runtime.events <- created("one", "10.0.0.1")
	g.Eventually(func() string { return s.address("one").String() }, answeredAfter).Should(Equal("10.0.0.1"))
	first.Stop()
	runtime = &runtimeService{events: make(chan *runtimeapi.ContainerEventResponse)} // what stops may still take an event
	runtime.serve(t, socket)
	runtime.events <- created("two", "10.0.0.2")
	g.Eventually(func() string { return s.address("two").String() }, answeredAfter).Should(Equal("10.0.0.2"))
	if address := s.address("one"); address.IsValid() {
		t.Errorf("a pod of before is still at %s", address)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("told to stop, it failed: %v", err)
	}
}

func TestFollowNeedsAnEndpoint(t *testing.T) {
	s := &sandboxes{changed: func() {}, of: map[types.UID]sandbox{}}
	if err := s.follow(t.Context(), "\x00", logr.Discard()); err == nil {
		t.Error("it follows a runtime without an address")
	}
}
