package chain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// mappingsExpire is the interval at which upstream discovers the resources
// again that the parameters of policies can have.
const mappingsExpire = 30 * time.Second

// restMapper maps kinds to resources for policies. It discovers the resources
// again when it is used; upstream does so in a goroutine.
type restMapper struct {
	meta.ResettableRESTMapper

	mu    sync.Mutex
	reset time.Time
}

func newRESTMapper(client discovery.DiscoveryInterface) *restMapper {
	return &restMapper{ResettableRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))}
}

// RESTMapping implements meta.RESTMapper. Policies call no other method.
func (m *restMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	if time.Since(m.reset) > mappingsExpire {
		m.Reset()
		m.reset = time.Now()
	}
	m.mu.Unlock()
	return m.ResettableRESTMapper.RESTMapping(kind, versions...)
}
