package policies

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeRetry is the interval between attempts to reconnect to the runtime.
const runtimeRetry = time.Second

// sandboxes knows the address of a pod before its first container starts. The
// pod's status has it a second later, and a policy would deny the pod its
// connections meanwhile.
type sandboxes struct {
	changed func()

	mu sync.Mutex
	of map[types.UID]sandbox
}

type sandbox struct {
	id      string
	address netip.Addr
}

// follow receives events of the node's container runtime until ctx ends.
func (s *sandboxes) follow(ctx context.Context, endpoint string, log logr.Logger) error {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	runtime := runtimeapi.NewRuntimeServiceClient(conn)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.listen(ctx, runtime); ctx.Err() == nil {
			log.Info("Reconnecting to the container runtime", "reason", err.Error())
		}
	}, runtimeRetry)
	return conn.Close()
}

// listen returns when the stream of events ends, with the reason.
func (s *sandboxes) listen(ctx context.Context, runtime runtimeapi.RuntimeServiceClient) error {
	events, err := runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	s.forget()
	for {
		event, err := events.Recv()
		if err != nil {
			return err
		}
		s.note(event)
	}
}

// forget drops all addresses: a sandbox may have been replaced while no events
// arrived. The status of a pod that ran before has its address.
func (s *sandboxes) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) > 0 {
		clear(s.of)
		s.changed()
	}
}

// note records the address of a sandbox, or its deletion.
func (s *sandboxes) note(event *runtimeapi.ContainerEventResponse) {
	status := event.GetPodSandboxStatus()
	uid := types.UID(status.GetMetadata().GetUid())
	now := sandbox{id: status.GetId()}
	now.address, _ = netip.ParseAddr(status.GetNetwork().GetIp()) // none in the host network
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.of[uid]
	switch {
	case event.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT && event.GetContainerId() == was.id:
		delete(s.of, uid)
	case event.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT && now.address.IsValid() && now != was:
		s.of[uid] = now
		s.changed()
	}
}

// address returns the address of a pod, if it is known.
func (s *sandboxes) address(uid types.UID) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[uid].address
}
