// Package patch rewrites fields of copies by a tenant's spec.sync.patches. It
// is pure: it only reads and writes its arguments.
package patch

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Set holds the compiled patches of one tenant. It is immutable and safe for
// concurrent use. A nil Set has no patches.
type Set struct {
	byKind map[string][]*patch
}

// Compile returns a Set. A patch that does not compile keeps its error, and
// Apply returns it for each of the patch's kinds: it blocks these objects, and
// not the tenant.
func Compile(patches []tenancyv1alpha1.SyncPatch) *Set {
	s := &Set{byKind: map[string][]*patch{}}
	for i := range patches {
		compiled := compile(&patches[i])
		for _, kind := range patches[i].Kinds {
			s.byKind[kind] = append(s.byKind[kind], compiled)
		}
	}
	return s
}

// Has reports whether there are patches for a kind.
func (s *Set) Has(kind string) bool { return s != nil && len(s.byKind[kind]) > 0 }

// Apply changes object, which is about to be written to the super cluster, by
// the patches for its kind, in their order. Each patch sees the result of those
// before it. A kind is named Pod or, for a custom resource,
// Certificate.cert-manager.io. The object is typed or unstructured; self, the
// tenant's object, is only read.
//
// The result must fit the object's type: an unknown field is an error, and so
// is a value of another type. For an unstructured object, only the metadata is
// checked. On error, object is unchanged.
//
// Apply silently restores fields that no patch may change: kind and apiVersion;
// the metadata except labels, annotations and finalizers; and the labels and
// annotations below tenancy.x-k8s.io/ and pod-security.kubernetes.io/.
//
// An error names the patch and the field, and may be shown to the tenant. The
// context's error is wrapped.
func (s *Set) Apply(ctx context.Context, kind string, object, self client.Object, tenant translate.Tenant) error {
	if !s.Has(kind) {
		return nil
	}
	err := apply(ctx, s.byKind[kind], object, self, tenant)
	if err == nil {
		return nil
	}
	if gone := ctx.Err(); gone != nil {
		return fmt.Errorf("patch %s: %w", kind, gone)
	}
	return errors.New(tenant.Text(err.Error(), self.GetNamespace()))
}

// apply patches a draft and, if all patches succeed, overwrites the object with
// it.
func apply(ctx context.Context, patches []*patch, object, self client.Object, tenant translate.Tenant) error {
	d, err := newDraft(object, self, tenant)
	if err != nil {
		return err
	}
	changed, err := applyAll(ctx, patches, d, nil)
	if err != nil || !changed {
		return err
	}
	result, err := d.result()
	if err != nil {
		return blame(ctx, patches, object, self, tenant, err)
	}
	overwrite(object, result)
	return nil
}

// applyAll reports whether any patch applied to this object. It calls check,
// unless it is nil, after each step.
func applyAll(ctx context.Context, patches []*patch, d *draft, check func() error) (bool, error) {
	changed := false
	for _, p := range patches {
		applied, err := p.apply(ctx, d, check)
		if err != nil {
			return false, err
		}
		changed = changed || applied
	}
	return changed, nil
}

// blame finds the step whose result does not fit the object's type. Checking
// every step would be too expensive in the normal case, so the patches are
// applied again.
func blame(ctx context.Context, patches []*patch, object, self client.Object, tenant translate.Tenant, misfit error) error {
	d, err := newDraft(object, self, tenant)
	if err != nil {
		return err
	}
	_, err = applyAll(ctx, patches, d, func() error {
		_, err := d.result()
		return err
	})
	if err != nil {
		return err
	}
	return misfit
}
