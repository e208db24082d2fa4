package convert

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// hasShared reports whether tenants share objects of the kind.
func (c *call) hasShared() bool { return c.kind.Offered || c.isRBAC() && c.kind.Stored.InRoot }

func (c *call) isRBAC() bool { return c.kind.Group == kinds.RBACGroup }

// sharedObject returns the shared object with a name, or false if there is none.
func (c *call) sharedObject(ctx context.Context, name string) (document.Object, bool, error) {
	if c.isRBAC() {
		object, ok := c.RBAC.Shared(c.info.Resource, name)
		return object, ok, nil
	}
	return c.offeredObject(ctx, name)
}

// errShared is why a shared object is not deleted.
func (c *call) errShared() error {
	if c.kind.Offered {
		return errOffered
	}
	return errShared
}

// allShared returns the shared objects with labels.
func (c *call) allShared(ctx context.Context, selected labels.Selector) ([]document.Object, error) {
	if c.isRBAC() {
		return c.RBAC.AllShared(c.info.Resource, selected)
	}
	return c.allOffered(ctx, selected)
}

// sharedObjects returns the shared objects that selectors select, in a form.
func (c *call) sharedObjects(ctx context.Context, form form, query url.Values) ([]document.Object, error) {
	if !c.hasShared() {
		return nil, nil
	}
	labelled, err := labels.Parse(query.Get(labelSelector))
	if err != nil {
		return nil, err
	}
	selected, err := fields.ParseSelector(query.Get(fieldSelector))
	if err != nil {
		return nil, err
	}
	all, err := c.allShared(ctx, labelled)
	if err != nil {
		return nil, err
	}
	var objects []document.Object
	for _, object := range all {
		stored, err := c.storedAs(nameOf(object))
		if err == nil && selected.Matches(fields.Set{metav1.ObjectNameField: stored}) {
			objects = append(objects, form.of(object))
		}
	}
	return objects, nil
}

// addShared adds the shared objects to the last page of a list. A list that has
// but one page is sorted by name, as in a cluster.
func (c *call) addShared(ctx context.Context, list document.Object, form form, query url.Values) error {
	metadata, _ := list["metadata"].(document.Object)
	items, isList := list["items"].([]any)
	delete(metadata, "remainingItemCount") // the shared ones are not counted
	if next, _ := metadata["continue"].(string); next != "" || !isList {
		return nil
	}
	shared, err := c.sharedObjects(ctx, form, query)
	if err != nil {
		return err
	}
	for _, object := range shared {
		items = append(items, object)
	}
	slices.SortStableFunc(items, func(a, b any) int {
		first, _ := a.(document.Object)
		second, _ := b.(document.Object)
		return cmp.Compare(nameOf(first), nameOf(second))
	})
	list["items"] = items
	return nil
}

// answerShared answers a read of an object that all tenants share, and of which
// this one has no copy.
func (c *call) answerShared(w http.ResponseWriter, r *http.Request, converter *document.Response, shared document.Object) error {
	if err := converter.Up(shared); err != nil {
		return err
	}
	return writeDocument(w, r, http.StatusOK, shared)
}
