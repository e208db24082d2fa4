package provider

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errOther reports that an apiserver answered a request for one object with
// another.
var errOther = errors.New("the tenant's apiserver answered with another object than requested")

// answersChecked is a client of an untrusted apiserver. It rejects answers with
// another object or another kind than requested: client-go leaves the object
// empty if the answer has another type.
type answersChecked struct{ client.Client }

// asked identifies the requested object.
type asked struct {
	gvk schema.GroupVersionKind
	key client.ObjectKey
}

func askedFor(obj client.Object) asked {
	return asked{obj.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(obj)}
}

// check returns an error if an answer is another object. A typed object need
// not state its kind.
func (a asked) check(obj client.Object) error {
	says := obj.GetObjectKind().GroupVersionKind()
	if !says.Empty() && says != a.gvk || client.ObjectKeyFromObject(obj) != a.key || obj.GetResourceVersion() == "" {
		return errOther
	}
	return nil
}

// Get reads an object.
func (c answersChecked) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	want := asked{obj.GetObjectKind().GroupVersionKind(), key}
	if err := c.Client.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	return want.check(obj)
}

// List reads a list. A valid list has a resource version.
func (c answersChecked) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	want := list.GetObjectKind().GroupVersionKind()
	if err := c.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if _, partial := list.(*metav1.PartialObjectMetadataList); !partial && list.GetObjectKind().GroupVersionKind() != want ||
		list.GetResourceVersion() == "" {
		return errOther
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); !ok || obj.GetName() == "" {
			return errOther
		}
		return nil
	})
}

// Create creates an object.
func (c answersChecked) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	want := askedFor(obj)
	if err := c.Client.Create(ctx, obj, opts...); err != nil {
		return err
	}
	if want.key.Name == "" {
		want.key.Name = obj.GetName()
	}
	return want.check(obj)
}

// Update replaces an object.
func (c answersChecked) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	want := askedFor(obj)
	if err := c.Client.Update(ctx, obj, opts...); err != nil {
		return err
	}
	return want.check(obj)
}

// Patch changes an object.
func (c answersChecked) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	want := askedFor(obj)
	if err := c.Client.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	return want.check(obj)
}

// Status changes the status of objects.
func (c answersChecked) Status() client.SubResourceWriter { return statusChecked{c.Client.Status()} }

// statusChecked is Status with checked answers.
type statusChecked struct{ client.SubResourceWriter }

// Patch changes the status of an object.
func (s statusChecked) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	want := askedFor(obj)
	if err := s.SubResourceWriter.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	return want.check(obj)
}
