package sharedcrds

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize bounds the memory for objects of a tenant, which may be large.
	pageSize = 50
	// writers is how many objects of a tenant are rewritten at a time.
	writers = 8
)

// objects are the tenant's objects of a CRD.
type objects struct {
	client client.Client
	gvk    runtimeschema.GroupVersionKind
}

// objects returns those of a CRD in a version.
func (s *Syncer) objects(d *crd, version string) objects {
	resource, group, _ := strings.Cut(d.Name, ".")
	gvk := runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: d.Spec.Names.Kind}
	scope := meta.RESTScopeRoot
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		scope = meta.RESTScopeNamespace
	}
	s.cluster.Learn(&meta.RESTMapping{GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(resource), Scope: scope})
	return objects{s.cluster.GetClient(), gvk}
}

// errOutdated is returned while an apiserver of the tenant that answers does not
// know the CRD as it was written.
var errOutdated = errors.New("an apiserver of the tenant does not serve it yet as it was changed")

// list lists a page of the objects.
func (o objects) list(ctx context.Context, limit int64, after string) (*unstructured.UnstructuredList, error) {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(o.gvk.GroupVersion().WithKind(o.gvk.Kind + "List"))
	err := o.client.List(ctx, page, client.Limit(limit), client.Continue(after))
	switch {
	case apierrors.IsNotFound(err):
		return nil, errOutdated
	case err != nil:
		return nil, fmt.Errorf("list the tenant's %s objects: %w", o.gvk.GroupKind(), err)
	}
	return page, nil
}

// page lists the page after a token. If that has expired, the apiserver returns
// another one in its place, or the first page is listed.
func (o objects) page(ctx context.Context, after string) (*unstructured.UnstructuredList, error) {
	page, err := o.list(ctx, pageSize, after)
	var refused apierrors.APIStatus
	if after != "" && errors.As(err, &refused) {
		return o.list(ctx, pageSize, refused.Status().Continue)
	}
	return page, err
}

// empty reports whether there are none.
func (o objects) empty(ctx context.Context) (bool, error) {
	page, err := o.list(ctx, 1, "")
	return err == nil && len(page.Items) == 0, err
}

// rewrite writes every object after a token unchanged, which changes the version
// in which it is stored. Between pages, it calls reached with the next token.
func (o objects) rewrite(ctx context.Context, after string, reached func(token string) error) error {
	for {
		page, err := o.page(ctx, after)
		if err != nil {
			return err
		}
		writing, each := errgroup.WithContext(ctx)
		writing.SetLimit(writers)
		for i := range page.Items {
			writing.Go(func() error { return o.rewriteOne(each, &page.Items[i]) })
		}
		if err := writing.Wait(); err != nil {
			return err
		}
		if after = page.GetContinue(); after == "" {
			return nil
		}
		if err := reached(after); err != nil {
			return err
		}
	}
}

// rewriteOne writes an object unchanged.
func (o objects) rewriteOne(ctx context.Context, obj *unstructured.Unstructured) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := o.client.Update(ctx, obj)
		if apierrors.IsConflict(err) {
			if err := o.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
		}
		return err
	})
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err):
		return errOutdated // it is not the object that was not found
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("rewrite %s %s: %w", o.gvk.GroupKind(), client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
