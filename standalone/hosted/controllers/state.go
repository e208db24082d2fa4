package controllers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// state reads what a tenant has stored. It reads the store itself: a cache could
// lag behind the change that made a controller necessary.
type state struct {
	feed      *feed.Feed
	tenant    string
	authority []byte
	// changed are the resources to consider; all when nil.
	changed map[string]bool
}

// resources returns the resources to consider.
func (s *state) resources(ctx context.Context) ([]string, error) {
	if s.changed == nil {
		return s.feed.Resources(ctx, s.tenant)
	}
	resources := make([]string, 0, len(s.changed))
	for resource := range s.changed {
		resources = append(resources, resource)
	}
	return resources, nil
}

// any reports whether a condition is true for any record of a resource.
func (s *state) any(ctx context.Context, resource string, condition func(name string, value []byte) (bool, error)) (bool, error) {
	subscription, err := s.feed.Subscribe(s.tenant, resource, func() {})
	if err != nil {
		return false, err
	}
	defer subscription.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	search := &search{condition: condition, stop: cancel}
	err = subscription.Receive(ctx, search)
	switch {
	case search.found || search.err != nil:
		return search.found, search.err
	case err != nil:
		return false, fmt.Errorf("list %s: %w", resource, err)
	}
	return false, nil
}

// anyMetadata does the same for a condition on metadata. An object that cannot
// be decoded meets every condition: no controller may overlook it.
func (s *state) anyMetadata(ctx context.Context, resource string, condition func(*metav1.ObjectMeta) bool) (bool, error) {
	return s.any(ctx, resource, func(_ string, value []byte) (bool, error) {
		object, err := views.DecodeMetadata(value)
		return err != nil || condition(&object.ObjectMeta), nil //nolint:nilerr // meets the condition, see above
	})
}

// search receives the records of a resource, until one meets the condition.
type search struct {
	condition func(name string, value []byte) (bool, error)
	stop      func()
	found     bool
	err       error
}

// Names implements feed.Receiver.
func (*search) Names() []string { return nil }

// Receive implements feed.Receiver.
func (s *search) Receive(change feed.Change) {
	if change.Value == nil || s.found || s.err != nil {
		return
	}
	if s.found, s.err = s.condition(change.Name, change.Value); s.found || s.err != nil {
		s.stop()
	}
}

// Listed implements feed.Receiver.
func (*search) Listed(int64) {}

// decode returns a stored object in the only version in which it is stored.
func decode[T runtime.Object](value []byte) (T, error) {
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return *new(T), err
	}
	typed, ok := object.(T)
	if !ok {
		return typed, fmt.Errorf("decode a stored object: got %T", object)
	}
	return typed, nil
}
