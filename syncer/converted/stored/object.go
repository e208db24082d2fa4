package stored

import (
	"encoding/json"
	"errors"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// object is what is read of an object of any kind.
type object struct {
	metav1.PartialObjectMetadata

	// size is that of its JSON.
	size int64
	// spec is used of definitions only.
	spec json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(data []byte) error {
	spec := struct {
		Spec json.RawMessage `json:"spec"`
	}{}
	if err := errors.Join(json.Unmarshal(data, &o.PartialObjectMetadata), json.Unmarshal(data, &spec)); err != nil {
		return err
	}
	o.size, o.spec, o.ManagedFields = int64(len(data)), spec.Spec, nil
	return nil
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	return &object{PartialObjectMetadata: *o.DeepCopy(), size: o.size, spec: o.spec}
}

// list is a list of objects of any kind.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []object `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *list) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]object, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*object)
	}
	return &copied
}

// events decodes the events of a watch.
type events struct {
	body    io.ReadCloser
	decoder *json.Decoder
}

// Decode implements watch.Decoder.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	event := metav1.WatchEvent{}
	if err := e.decoder.Decode(&event); err != nil {
		return "", nil, err
	}
	var into runtime.Object = &object{}
	if event.Type == string(watch.Error) {
		into = &metav1.Status{}
	}
	return watch.EventType(event.Type), into, json.Unmarshal(event.Object.Raw, into)
}

// Close implements watch.Decoder.
func (e *events) Close() { _ = e.body.Close() }
