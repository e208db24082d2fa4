package policies

import (
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestSandboxes: a pod whose sandbox is made anew is where the new one is, in whichever order the events come.
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
