package decoded

import (
	"bytes"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// memoryFactor and memoryBase estimate the memory of an object, with its
	// encoding, by the length of the encoding.
	memoryFactor = 4
	memoryBase   = 2 << 10
	// A tenant may use this part of the capacity, so that lists of a large one
	// leave objects of the others.
	tenantPart = 4
	// sample is the number of tenants of which the largest one loses objects.
	// All tenants would be too many to compare for each object.
	sample = 8
)

// Cache has decoded objects of many tenants. Nothing may change an object of
// it.
type Cache struct {
	capacity int64
	seed     maphash.Seed

	mu      sync.Mutex // guards all below
	used    int64
	tenants map[string]*tenant
	// generation is the number of calls of Trim.
	generation int64
}

// tenant has the objects of a tenant.
type tenant struct {
	used    int64
	objects map[key]*entry
}

// key finds an object. The resource is the decoder: each one has its own types.
type key struct {
	resource *decoder
	revision uint64
	hash     uint64
}

type entry struct {
	data   []byte // the encoding, which has to be equal
	object runtime.Object
	// generation is that of the last list with the object.
	generation int64
}

func (e *entry) size() int64 { return memoryBase + memoryFactor*int64(len(e.data)) }

// New returns a cache of objects that take about as many bytes as capacity.
func New(capacity int64) *Cache {
	return &Cache{capacity: capacity, seed: maphash.MakeSeed(), tenants: map[string]*tenant{}}
}

// get returns the object of an encoding; nil if it is not known.
func (c *Cache) get(name string, k key, data []byte) runtime.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[name]
	if t == nil {
		return nil
	}
	found := t.objects[k]
	if found == nil || !bytes.Equal(found.data, data) {
		return nil
	}
	found.generation = c.generation
	return found.object
}

// add adds an object. It takes the place of others of the tenant if the tenant
// has its part, and of those of a large tenant if all is used.
func (c *Cache) add(name string, k key, data []byte, object runtime.Object) {
	added := &entry{data: data, object: object}
	if added.size() > c.capacity/tenantPart {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	added.generation = c.generation
	t := c.tenants[name]
	if t == nil {
		t = &tenant{objects: map[key]*entry{}}
		c.tenants[name] = t
	}
	c.lockedRemove(t, k)
	for t.used+added.size() > c.capacity/tenantPart {
		c.lockedEvict(t)
	}
	for c.used+added.size() > c.capacity {
		c.lockedEvict(c.lockedLarge())
	}
	t.objects[k] = added
	t.used += added.size()
	c.used += added.size()
}

// lockedEvict removes any object of a tenant. The oldest one would be the next
// to be listed if a list is longer than the cache.
func (c *Cache) lockedEvict(t *tenant) {
	for k := range t.objects { // in random order
		c.lockedRemove(t, k)
		return
	}
}

func (c *Cache) lockedRemove(t *tenant, k key) {
	removed := t.objects[k]
	if removed == nil {
		return
	}
	delete(t.objects, k)
	t.used -= removed.size()
	c.used -= removed.size()
}

// lockedLarge returns the largest of some tenants.
func (c *Cache) lockedLarge() *tenant {
	var largest *tenant
	compared := 0
	for _, t := range c.tenants { // in random order
		if largest == nil || t.used > largest.used {
			largest = t
		}
		if compared++; compared == sample {
			break
		}
	}
	return largest
}

// Trim removes objects that no list had since the last call, among them those
// that have changed or were deleted since.
func (c *Cache) Trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.tenants {
		kept := map[key]*entry{} // a map does not shrink
		for k, e := range t.objects {
			if e.generation == c.generation {
				kept[k] = e
				continue
			}
			t.used -= e.size()
			c.used -= e.size()
		}
		t.objects = kept
		if len(kept) == 0 {
			delete(c.tenants, name)
		}
	}
	c.generation++
}

// Forget removes all objects of a tenant.
func (c *Cache) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tenants[name]; t != nil {
		c.used -= t.used
		delete(c.tenants, name)
	}
}
