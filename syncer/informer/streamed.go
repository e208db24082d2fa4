package informer

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
)

// errFrame reports a frame that does not continue the stream. The next stream
// begins with all objects.
var errFrame = errors.New("the stream is inconsistent")

// streamed is an informer that a stream feeds. Its methods are called by the
// goroutine of the stream.
type streamed struct {
	*store

	// kind is requested; its Since is the revision up to which the index has
	// all objects.
	kind watchstream.Kind
	// listing is set during a list, list are its objects so far.
	listing bool
	list    []any
}

// unchanged is the stored form of an object that a list only names.
type unchanged struct {
	key  string
	kept any
}

// begin prepares for a new response.
func (m *streamed) begin() { m.listing, m.list = false, nil }

// receive applies a frame. After an error, the stream has to be opened again.
func (m *streamed) receive(frame watchstream.Frame) error {
	var err error
	switch {
	case frame.Op == watchstream.Begin:
		m.forgetCollected()
		m.listing, m.list = true, nil
		return nil
	case frame.Op == watchstream.Put && m.listing:
		err = m.collectObject(frame)
	case frame.Op == watchstream.Same && m.listing:
		err = m.collectSame(frame)
	case frame.Op == watchstream.Listed && m.listing:
		err = m.Replace(m.list, strconv.FormatInt(frame.Revision, 10))
		m.begin()
	case frame.Op == watchstream.Put:
		err = m.put(frame)
	case frame.Op == watchstream.Gone && !m.listing:
		err = m.gone(frame)
	default:
		err = errFrame
	}
	if err != nil {
		m.kind.Since = 0
		return fmt.Errorf("receive %s %s: %w", m.kind.Resource.Resource, frame.Name, err)
	}
	if !m.listing {
		m.reached(frame.Revision)
	}
	return nil
}

// reached records the revision up to which the index has all objects.
func (m *streamed) reached(revision int64) {
	m.kind.Since = max(m.kind.Since, revision)
	m.revision.Store(m.kind.Since)
}

// collectObject adds an object to the list, packed.
func (m *streamed) collectObject(frame watchstream.Frame) error {
	obj, err := m.decode(frame)
	if err != nil {
		return err
	}
	kept, err := m.Transformer()(obj)
	if err == nil {
		m.list = append(m.list, kept)
	}
	return err
}

// collectSame adds an object to the list that the index has already.
func (m *streamed) collectSame(frame watchstream.Frame) error {
	kept, known, err := m.indexer.kept(frame.Name)
	if err != nil {
		return err
	}
	if !known || versionOf(kept) != strconv.FormatInt(frame.Revision, 10) {
		return errFrame
	}
	m.list = append(m.list, unchanged{frame.Name, kept})
	return nil
}

// put stores the state of an object.
func (m *streamed) put(frame watchstream.Frame) error {
	obj, err := m.decode(frame)
	if err != nil {
		return err
	}
	return m.Update(obj)
}

// gone deletes an object, with its last state. Without that, it is the last
// known one.
func (m *streamed) gone(frame watchstream.Frame) error {
	kept, known, err := m.indexer.kept(frame.Name)
	if err != nil || !known {
		return err
	}
	if len(frame.Object) > 0 {
		last, err := m.decode(frame)
		if err != nil {
			return err
		}
		return m.Delete(last)
	}
	last, ok := unpack(kept).(runtime.Object)
	if !ok {
		return errFrame
	}
	last = last.DeepCopyObject()
	last.(metav1.Object).SetResourceVersion(strconv.FormatInt(frame.Revision, 10))
	return m.Delete(last)
}

// canDecode reports whether the objects of a kind have protocol buffers.
func canDecode(example runtime.Object) bool {
	_, ok := example.(message)
	return ok
}

// decode decodes the object of a frame, which must have its name.
func (m *streamed) decode(frame watchstream.Frame) (any, error) {
	obj, ok := reflect.TypeAssert[message](reflect.New(reflect.TypeOf(m.example).Elem()))
	if !ok {
		return nil, errFrame
	}
	if err := obj.Unmarshal(frame.Object); err != nil {
		return nil, err
	}
	// Protocol buffers do not state the kind.
	obj.GetObjectKind().SetGroupVersionKind(m.example.GetObjectKind().GroupVersionKind())
	key, err := keyOf(obj)
	if err != nil {
		return nil, err
	}
	if key != frame.Name || versionOf(obj) != strconv.FormatInt(frame.Revision, 10) {
		return nil, errFrame
	}
	return obj, nil
}

// versionOf returns the resource version of a stored form.
func versionOf(kept any) string {
	if obj, ok := unpack(kept).(metav1.Object); ok {
		return obj.GetResourceVersion()
	}
	return ""
}
