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

// packed is an object as it is kept: what would be sent of it, which takes a fifth of the memory and has no pointers that the garbage
// collector follows. It is unpacked when somebody reads it, and until the next collection everybody who does gets the same object.
type packed struct {
	key  string
	data []byte
	of   reflect.Type
	// made is told of each object that is made of it.
	made func(obj any)

	mu sync.Mutex
	// recent is the object as long as nobody has collected the garbage.
	recent weak.Pointer[unpacked]
}

var _ metav1.ObjectMetaAccessor = (*packed)(nil)

// unpacked is what a weak pointer points to.
type unpacked struct{ obj message }

// message is what has a wire format: all types that are built into Kubernetes.
type message interface {
	runtime.Object
	// Marshal writes it.
	Marshal() ([]byte, error)
	// Unmarshal reads it into an empty object.
	Unmarshal(data []byte) error
}

// pack packs an object; made is told when it is made again. One that has no wire format stays as it is, and so does one that says what
// kind it is of, which is not in that format.
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
		return nil, fmt.Errorf("packing the %T %s: %w", obj, key, err)
	}
	return &packed{key: key, data: data, of: reflect.TypeOf(obj).Elem(), made: made, recent: weak.Make(&unpacked{m})}, nil
}

// unpack is the object that is kept so. What has been written can be read: were it ever not, the error stands in the place of the
// object, where everybody sees that it is none.
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
		return fmt.Errorf("unpacking the %s %s: %w", p.of, p.key, err)
	}
	p.recent = weak.Make(&unpacked{obj})
	p.made(obj)
	return obj
}

// GetObjectMeta returns the metadata, by which a reflector sorts what it collects.
func (p *packed) GetObjectMeta() metav1.Object {
	obj, ok := unpack(p).(metav1.Object)
	if !ok {
		return nil
	}
	return obj
}

// unpackAll unpacks what is kept.
func unpackAll(kept []any) []any {
	for n, one := range kept {
		kept[n] = unpack(one)
	}
	return kept
}
