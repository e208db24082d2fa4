package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/rangeallocation"
	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
)

// nodePortsKey is the key of the record of allocated node ports, as
// kube-apiserver has it.
const nodePortsKey = "/ranges/servicenodeports"

const nodePortsTimeout = 10 * time.Second

var (
	nodePortsResource = api.Resource("servicenodeportallocations")

	errAllocated = errors.New("the port is allocated")
)

// nodePorts is the record of a tenant's node ports, in the tenant's keys. It is
// upstream's record, but it uses the storage of the chain: upstream's
// (registry/core/service/allocator/storage) has a client of etcd of its own,
// which would write outside of all tenants.
//
// It keeps nothing in memory. So a port that an apiserver of the same tenant
// allocates, which was removed and ends its last requests, is not allocated
// twice.
type nodePorts struct {
	ctx   context.Context
	store storage.Interface
	blank func() *allocator.AllocationBitmap

	updating sync.Mutex // avoids conflicts
}

var (
	_ allocator.Interface           = (*nodePorts)(nil)
	_ rangeallocation.RangeRegistry = (*nodePorts)(nil)
)

// newNodePorts returns the allocator of node ports and its record, of the
// tenant of a context.
func (c *Chain) newNodePorts(ctx context.Context, ports utilnet.PortRange) (*portallocator.PortAllocator, *nodePorts, error) {
	options, err := c.stores.GetRESTOptions(nodePortsResource, &api.RangeAllocation{})
	if err != nil {
		return nil, nil, fmt.Errorf("configure the storage of node ports: %w", err)
	}
	newFunc := func() runtime.Object { return &api.RangeAllocation{} }
	store, _, err := options.Decorator(options.StorageConfig, nodePortsKey, nil, newFunc, nil, nil, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	record := &nodePorts{ctx: ctx, store: store}
	allocations, err := portallocator.New(ports, func(size int, spec string, offset int) (allocator.Interface, error) {
		record.blank = func() *allocator.AllocationBitmap { return allocator.NewAllocationMapWithOffset(size, spec, offset) }
		return record, nil
	})
	return allocations, record, err
}

// Allocate implements allocator.Interface.
func (p *nodePorts) Allocate(offset int) (bool, error) {
	err := p.update(func(ports *allocator.AllocationBitmap) error {
		ok, err := ports.Allocate(offset)
		if err == nil && !ok {
			err = errAllocated
		}
		return err
	})
	if errors.Is(err, errAllocated) {
		return false, nil
	}
	return err == nil, err
}

// AllocateNext implements allocator.Interface.
func (p *nodePorts) AllocateNext() (offset int, ok bool, err error) {
	err = p.update(func(ports *allocator.AllocationBitmap) error {
		var err error
		offset, ok, err = ports.AllocateNext()
		if err == nil && !ok {
			err = errAllocated
		}
		return err
	})
	if errors.Is(err, errAllocated) {
		return 0, false, nil
	}
	return offset, err == nil, err
}

// Release implements allocator.Interface.
func (p *nodePorts) Release(offset int) error {
	return p.update(func(ports *allocator.AllocationBitmap) error { return ports.Release(offset) })
}

// ForEach implements allocator.Interface.
func (p *nodePorts) ForEach(visit func(int)) {
	if ports, err := p.read(); err == nil {
		ports.ForEach(visit)
	}
}

// Has implements allocator.Interface.
func (p *nodePorts) Has(offset int) bool {
	ports, err := p.read()
	return err == nil && ports.Has(offset)
}

// Free implements allocator.Interface.
func (p *nodePorts) Free() int {
	ports, err := p.read()
	if err != nil {
		return 0
	}
	return ports.Free()
}

// Destroy implements allocator.Interface.
func (*nodePorts) Destroy() {}

func (p *nodePorts) read() (*allocator.AllocationBitmap, error) {
	record, err := p.Get()
	if err != nil {
		return nil, err
	}
	return p.decode(record)
}

func (p *nodePorts) decode(record *api.RangeAllocation) (*allocator.AllocationBitmap, error) {
	if record.ResourceVersion == "" {
		return nil, errors.New("node ports are not recorded yet")
	}
	ports := p.blank()
	return ports, ports.Restore(record.Range, record.Data)
}

func (p *nodePorts) update(change func(*allocator.AllocationBitmap) error) error {
	return p.write(func(record *api.RangeAllocation) (runtime.Object, error) {
		ports, err := p.decode(record)
		if err != nil {
			return nil, err
		}
		if err := change(ports); err != nil {
			return nil, err
		}
		record.Range, record.Data = ports.Snapshot()
		return record, nil
	})
}

func (p *nodePorts) write(change func(*api.RangeAllocation) (runtime.Object, error)) error {
	p.updating.Lock()
	defer p.updating.Unlock()
	ctx, cancel := context.WithTimeout(p.ctx, nodePortsTimeout)
	defer cancel()
	err := p.store.GuaranteedUpdate(ctx, nodePortsKey, &api.RangeAllocation{}, true, nil,
		storage.SimpleUpdate(func(stored runtime.Object) (runtime.Object, error) {
			return change(stored.(*api.RangeAllocation))
		}), nil)
	return storeerr.InterpretUpdateError(err, nodePortsResource, "")
}

// Get implements rangeallocation.RangeRegistry.
func (p *nodePorts) Get() (*api.RangeAllocation, error) {
	ctx, cancel := context.WithTimeout(p.ctx, nodePortsTimeout)
	defer cancel()
	record := &api.RangeAllocation{}
	err := p.store.Get(ctx, nodePortsKey, storage.GetOptions{IgnoreNotFound: true}, record)
	return record, storeerr.InterpretGetError(err, nodePortsResource, "")
}

// CreateOrUpdate implements rangeallocation.RangeRegistry.
func (p *nodePorts) CreateOrUpdate(record *api.RangeAllocation) error {
	return p.write(func(stored *api.RangeAllocation) (runtime.Object, error) {
		if stored.ResourceVersion != record.ResourceVersion {
			return nil, apierrors.NewConflict(nodePortsResource, "", errors.New("node ports were allocated meanwhile"))
		}
		return record.DeepCopy(), nil
	})
}
