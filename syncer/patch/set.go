// Package patch rewrites fields of the copies that go down to the super cluster, as a tenant's spec.sync.patches say. It is
// pure: it reads and writes nothing but its arguments.
package patch

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Set is the patches of one tenant, compiled. Nothing changes it once it is made, so that many goroutines may share it. The nil
// Set has no patches.
type Set struct {
	byKind map[string][]*patch
}

// Compile makes a Set. A patch that does not compile keeps its error, and Apply returns it for each of the patch's kinds: it
// stops the objects that it is for, and not their tenant.
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

// Has says whether there are patches for a kind.
func (s *Set) Has(kind string) bool { return s != nil && len(s.byKind[kind]) > 0 }

// Apply changes object, which is about to be written to the super cluster, by the patches for its kind, one after the other.
// Each sees what those before it did. A kind is named Pod or, of a custom resource, Certificate.cert-manager.io. The object is
// typed or unstructured; self, the tenant's, is only read.
//
// The result must fit the object's type: a field that the type does not have is an error, and so is a value of another type.
// Of an unstructured object that holds for the metadata. After an error the object is what it was.
//
// Some things are put back without a word, so that no patch can change them: kind and apiVersion; the metadata but for labels,
// annotations and finalizers; and the labels and annotations below tenancy.x-k8s.io/ and pod-security.kubernetes.io/.
//
// An error names the patch and the field and may be read by the tenant. The context's error is returned as it is.
func (s *Set) Apply(ctx context.Context, kind string, object, self client.Object, tenant translate.Tenant) error {
	if !s.Has(kind) {
		return nil
	}
	err := apply(ctx, s.byKind[kind], object, self, tenant)
	if err == nil {
		return nil
	}
	if gone := ctx.Err(); gone != nil {
		return fmt.Errorf("patching %s: %w", kind, gone)
	}
	return errors.New(tenant.Text(err.Error(), self.GetNamespace()))
}

// apply patches a draft and writes it over the object if all went well.
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

// applyAll says whether a patch was for this object. After each step it calls check, if there is one.
func applyAll(ctx context.Context, patches []*patch, d *draft, check func() error) (bool, error) {
	changed := false
	for _, p := range patches {
		meant, err := p.apply(ctx, d, check)
		if err != nil {
			return false, err
		}
		changed = changed || meant
	}
	return changed, nil
}

// blame finds the step after which the result does not fit the object's type. To look after every step is too much work for
// when all is well, so the patches are applied again.
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
