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

// runtimeRetry is when a runtime that has gone is asked again.
const runtimeRetry = time.Second

// sandboxes know the address of a pod before its first container starts. The pod's status says it a second later, and
// meanwhile a policy would keep the pod from its peers.
type sandboxes struct {
	changed func()

	mu sync.Mutex
	of map[types.UID]sandbox
}

type sandbox struct {
	id      string
	address netip.Addr
}

// follow listens to the node's container runtime until ctx ends.
func (s *sandboxes) follow(ctx context.Context, endpoint string, log logr.Logger) error {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	runtime := runtimeapi.NewRuntimeServiceClient(conn)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.listen(ctx, runtime); ctx.Err() == nil {
			log.Info("the container runtime tells nothing now and is asked again", "reason", err.Error())
		}
	}, runtimeRetry)
	return conn.Close()
}

// listen returns when the runtime tells nothing any more, with the reason.
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

// note takes note of where a pod is, and of its end.
func (s *sandboxes) note(event *runtimeapi.ContainerEventResponse) {
	status := event.GetPodSandboxStatus()
	uid := types.UID(status.GetMetadata().GetUid())
	now := sandbox{id: status.GetId()}
	now.address, _ = netip.ParseAddr(status.GetNetwork().GetIp()) // none in the node's own network
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

// address is that of a pod, if it is known here.
func (s *sandboxes) address(uid types.UID) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[uid].address
}
