package sharedcrds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// objects returns those of a CRD with a spec, in a version that it serves.
func (s *Syncer) objects(of *subject, served *spec) objects {
	i := slices.IndexFunc(served.Versions, func(v version) bool { return v.Served })
	resource, group, _ := strings.Cut(of.name, ".")
	gvk := runtimeschema.GroupVersionKind{Group: group, Version: served.Versions[max(i, 0)].Name, Kind: served.Names.Kind}
	scope := meta.RESTScopeRoot
	if served.Scope == apiextensionsv1.NamespaceScoped {
		scope = meta.RESTScopeNamespace
	}
	s.cluster.Learn(&meta.RESTMapping{GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(resource), Scope: scope})
	return objects{s.cluster.GetClient(), gvk}
}

// list lists a page of the objects.
func (o objects) list(ctx context.Context, limit int64, after string) (*unstructured.UnstructuredList, error) {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(o.gvk.GroupVersion().WithKind(o.gvk.Kind + "List"))
	if err := o.client.List(ctx, page, client.Limit(limit), client.Continue(after)); err != nil {
		return nil, fmt.Errorf("list the tenant's %s objects: %w", o.gvk.GroupKind(), err)
	}
	return page, nil
}

// empty reports whether there are none.
func (o objects) empty(ctx context.Context) (bool, error) {
	page, err := o.list(ctx, 1, "")
	return err == nil && len(page.Items) == 0, err
}

// rewrite writes every object unchanged, which changes the version in which it
// is stored.
func (o objects) rewrite(ctx context.Context) error {
	for after := ""; ; {
		page, err := o.list(ctx, pageSize, after)
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
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("rewrite %s %s: %w", o.gvk.GroupKind(), client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
