package informer

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MemoryError reports that objects exceed their memory budget.
type MemoryError struct {
	// Kind is the kind of the object that exceeded the budget, Most the budget
	// in bytes.
	Kind string
	Most int64
}

// Error implements error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("the tenant's objects need more than %d MiB of the syncer's memory; the last one read is of kind %s",
		e.Most>>20, e.Kind)
}

// budget bounds the total memory of the objects of several informers.
type budget struct {
	most     int64
	exceeded func(error)

	mu   sync.Mutex
	used int64
	told bool
}

// take reserves memory, or releases it if size is negative. It reserves nothing
// and returns false if the budget does not suffice.
func (b *budget) take(kind string, size int64) bool {
	b.mu.Lock()
	if b.most <= 0 || size <= 0 || b.used+size <= b.most {
		b.used += size
		b.mu.Unlock()
		return true
	}
	tell := !b.told
	b.told = true
	b.mu.Unlock()
	if tell {
		b.exceeded(&MemoryError{Kind: kind, Most: b.most})
	}
	return false
}

// overhead is the memory that an index needs for each object.
const overhead = 256

// sizeOf estimates the memory of a stored object.
func sizeOf(kept any) int64 {
	switch kept := kept.(type) {
	case *packed:
		return overhead + int64(len(kept.key)+len(kept.data))
	case *unstructured.Unstructured:
		return overhead + sizeOfValue(kept.Object)
	case interface{ Size() int }:
		return overhead + unpackedFactor*int64(kept.Size())
	}
	return overhead
}

// unpackedFactor is how much more memory an object needs that is not packed.
const unpackedFactor = 5

// sizeOfValue estimates the memory of a JSON value.
func sizeOfValue(value any) int64 {
	const word = 16
	size := int64(word)
	switch value := value.(type) {
	case string:
		size += int64(len(value))
	case map[string]any:
		size += 3 * word
		for key, field := range value {
			size += 2*word + int64(len(key)) + sizeOfValue(field)
		}
	case []any:
		size += word
		for _, element := range value {
			size += sizeOfValue(element)
		}
	}
	return size
}
