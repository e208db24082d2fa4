package informer

import (
	"fmt"
	"reflect"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// packed is the stored form of an object: its wire format, which needs a fifth
// of the memory and has no pointers for the garbage collector. It is unpacked
// when it is read. All readers until the next garbage collection share one
// unpacked object.
type packed struct {
	key  string
	data []byte
	of   reflect.Type
	// made is called with each object that is unpacked again.
	made func(obj any)

	mu sync.Mutex
	// recent is the unpacked object until it is garbage-collected.
	recent weak.Pointer[unpacked]
}

var _ metav1.ObjectMetaAccessor = (*packed)(nil)

// unpacked is the target of a weak pointer.
type unpacked struct{ obj message }

// message is an object with a wire format: all types that are built into
// Kubernetes.
type message interface {
	runtime.Object
	// Marshal encodes the object.
	Marshal() ([]byte, error)
	// Unmarshal decodes into an empty object.
	Unmarshal(data []byte) error
}

// pack returns the packed form of an object; made is called when it is unpacked
// again. It returns objects without a wire format unchanged, and objects that
// state their kind, which is not part of that format.
func pack(obj any, made func(any)) (any, error) {
	m, ok := obj.(message)
	if !ok || !m.GetObjectKind().GroupVersionKind().Empty() {
		return obj, nil
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, err
	}
	data, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack %T %s: %w", obj, key, err)
	}
	return &packed{key: key, data: data, of: reflect.TypeOf(obj).Elem(), made: made, recent: weak.Make(&unpacked{m})}, nil
}

// unpack returns the object of a stored form. An object that was encoded can be
// decoded; if decoding failed nevertheless, the error would be returned in
// place of the object.
func unpack(kept any) any {
	p, ok := kept.(*packed)
	if !ok {
		return kept
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if recent := p.recent.Value(); recent != nil {
		return recent.obj
	}
	obj := reflect.New(p.of).Interface().(message)
	if err := obj.Unmarshal(p.data); err != nil {
		return fmt.Errorf("unpack %s %s: %w", p.of, p.key, err)
	}
	p.recent = weak.Make(&unpacked{obj})
	p.made(obj)
	return obj
}

// GetObjectMeta returns the metadata, which the reflector sorts a list by.
func (p *packed) GetObjectMeta() metav1.Object {
	obj, ok := unpack(p).(metav1.Object)
	if !ok {
		return nil
	}
	return obj
}

// unpackAll unpacks stored forms in place.
func unpackAll(kept []any) []any {
	for n, one := range kept {
		kept[n] = unpack(one)
	}
	return kept
}
