package sharedcrds

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// conflict is the reason why a CRD of the tenant cannot become the super
// cluster's.
type conflict struct{ error }

// Unwrap returns the reason.
func (c conflict) Unwrap() error { return c.error }

// markLength is the length of a mark.
const markLength = 16

// markOf returns the mark of a CRD; empty if it has none.
func markOf(d *crd) string {
	if d == nil {
		return ""
	}
	return d.Labels[names.SharedCRD]
}

// equal reports whether two specs are the same.
func equal(a, b *spec) bool { return equality.Semantic.DeepEqual(a, b) }

// act executes a step.
func (s *Syncer) act(ctx context.Context, of *subject, o observation, now step) error {
	enter := func(to phase) func() error {
		return func() error { return s.enter(ctx, of, o, to) }
	}
	action := map[step]func() error{
		forget:      func() error { return s.forget(ctx, of, o) },
		intend:      func() error { return s.record(ctx, of, &record{Phase: creating, Mark: rand.String(markLength)}) },
		create:      func() error { return s.create(ctx, of, o) },
		acknowledge: enter(copied),
		repair:      func() error { return s.repair(ctx, of, o) },

		recall:        enter(closing),
		shut:          func() error { return s.writeAndEnter(ctx, of, o, closedSpec(&o.found.Spec), closed) },
		deleteIfEmpty: func() error { return s.deleteIfEmpty(ctx, of, o) },
		unserve:       func() error { return s.write(ctx, o, unservedSpec(&o.found.Spec), o.record.Mark, nil) },
		purge:         func() error { return s.delete(ctx, o) },

		keep:    func() error { return s.keep(ctx, of, o) },
		replace: func() error { return s.replace(ctx, of, o) },
		confirm: enter(replaced),

		restore: enter(restoring),
		reopen: func() error {
			return s.writeAndEnter(ctx, of, o, reopenedSpec(of.own, o.found.Status.StoredVersions), rewriting)
		},
		rewrite: func() error { return s.rewrite(ctx, of, o) },
		finish:  enter(finishing),
		exact:   func() error { return s.write(ctx, o, of.own, "", nil) },
	}[now]
	if action == nil {
		return fmt.Errorf("step %s is unknown", now)
	}
	return action()
}

// repair writes the copy as it should be.
func (s *Syncer) repair(ctx context.Context, of *subject, o observation) error {
	if err := checkCopy(o.found, of.published.definition); err != nil {
		return conflict{err}
	}
	return s.write(ctx, o, of.desired, o.record.Mark, of.published.definition)
}

// keep records that the tenant's own CRD is about to be replaced.
func (s *Syncer) keep(ctx context.Context, of *subject, o observation) error {
	if err := checkSwap(o.found, of.published.definition); err != nil {
		return s.collide(ctx, o, err)
	}
	return s.record(ctx, of, &record{
		Phase: keeping, UID: o.found.UID, Mark: rand.String(markLength), Generation: o.found.Generation,
	})
}

// collide returns that the tenant's own CRD cannot be replaced in place. If a
// CRD is forced, an admin can have the tenant's own deleted with its objects.
func (s *Syncer) collide(ctx context.Context, o observation, err error) error {
	switch {
	case !o.forced:
		return conflict{err}
	case o.purged:
		return s.delete(ctx, o)
	}
	return conflict{fmt.Errorf("%w; a platform admin can delete it with its objects (see docs/shared-crds.md) as %s/%s",
		err, o.found.Name, o.found.UID)}
}

// record writes a record.
func (s *Syncer) record(ctx context.Context, of *subject, r *record) error {
	changed := maps.Clone(s.records)
	changed[of.name] = r
	return s.writeRecords(ctx, changed)
}

// writeRecords writes the records.
func (s *Syncer) writeRecords(ctx context.Context, changed records) error {
	if err := s.vault.write(ctx, changed); err != nil {
		return err
	}
	s.records = changed
	return nil
}

// enter records that the tenant's CRD is in a phase.
func (s *Syncer) enter(ctx context.Context, of *subject, o observation, to phase) error {
	return s.record(ctx, of, &record{Phase: to, UID: o.found.UID, Mark: o.record.Mark, Generation: o.found.Generation})
}

// forget drops the record of a CRD. A CRD that seems to be gone is not
// forgotten while the apiserver may serve another cluster.
func (s *Syncer) forget(ctx context.Context, of *subject, o observation) error {
	if err := s.cluster.Verify(ctx); err != nil {
		return fmt.Errorf("verify the tenant's cluster: %w", err)
	}
	changed := maps.Clone(s.records)
	delete(changed, of.name)
	if err := s.writeRecords(ctx, changed); err != nil || !o.record.hasOwn() {
		return err
	}
	return s.vault.drop(ctx, of.name)
}

// create creates the copy.
func (s *Syncer) create(ctx context.Context, of *subject, o observation) error {
	d := &crd{ObjectMeta: metav1.ObjectMeta{Name: of.name}, Spec: *of.desired.DeepCopy()}
	mark(d, o.record.Mark, o.fixed(), of.published.definition)
	label(d, of.published.definition)
	return client.IgnoreAlreadyExists(s.cluster.GetClient().Create(ctx, d))
}

// mark sets the mark of a CRD, or removes it if it is empty, and why the tenant
// cannot make the copy its own. Without the annotation of the super cluster's,
// an apiserver rejects a CRD in a group of Kubernetes.
func mark(d *crd, value, fixed string, system *crd) {
	if value == "" || fixed == "" {
		delete(d.Annotations, names.FixedCRD)
	}
	if value == "" {
		delete(d.Labels, names.SharedCRD)
		return
	}
	metav1.SetMetaDataLabel(&d.ObjectMeta, names.SharedCRD, value)
	if fixed != "" {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.FixedCRD, fixed)
	}
	if system != nil {
		if approved, ok := system.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, apiextensionsv1.KubeAPIApprovedAnnotation, approved)
		}
	}
}

// write writes the spec and the mark of the tenant's CRD if they differ, unless
// it has changed since it was observed.
func (s *Syncer) write(ctx context.Context, o observation, desired *spec, value string, system *crd) error {
	changed := o.found.DeepCopy()
	changed.Spec = *desired.DeepCopy()
	mark(changed, value, o.fixed(), system)
	if system != nil && !o.record.hasOwn() {
		label(changed, system)
	}
	if equality.Semantic.DeepEqual(changed, o.found) {
		return nil
	}
	if err := s.cluster.GetClient().Update(ctx, changed); err != nil {
		return fmt.Errorf("update CustomResourceDefinition %s: %w", o.found.Name, err)
	}
	*o.found = *changed
	return nil
}

// writeAndEnter writes the spec of the tenant's CRD, and then the phase.
func (s *Syncer) writeAndEnter(ctx context.Context, of *subject, o observation, desired *spec, to phase) error {
	if err := s.write(ctx, o, desired, o.record.Mark, nil); err != nil {
		return err
	}
	return s.enter(ctx, of, o, to)
}

// deleteIfEmpty deletes a copy that has no objects. One with objects is left.
func (s *Syncer) deleteIfEmpty(ctx context.Context, of *subject, o observation) error {
	if !equal(&o.found.Spec, closedSpec(&o.found.Spec)) {
		return s.enter(ctx, of, o, closing) // the tenant has opened it
	}
	empty, err := s.objects(o.found, closedGate).empty(ctx)
	if err != nil {
		return err
	}
	if !empty {
		return s.enter(ctx, of, o, left)
	}
	return s.remove(ctx, o)
}

// asObserved is the condition that the tenant's CRD has not changed since it was
// observed.
func asObserved(o observation) client.Preconditions {
	return client.Preconditions{UID: &o.found.UID, ResourceVersion: &o.found.ResourceVersion}
}

// remove deletes the tenant's CRD, and none of its objects. An apiserver removes
// a CRD that is deleted with a collection at once, while it would first delete
// all objects of one that is deleted by its name: also those that an apiserver
// that does not know the closed CRD yet has stored in the meantime.
func (s *Syncer) remove(ctx context.Context, o observation) error {
	err := s.cluster.GetClient().DeleteAllOf(ctx, &crd{}, client.MatchingFields{metav1.ObjectNameField: o.found.Name}, asObserved(o))
	if err != nil {
		return fmt.Errorf("delete CustomResourceDefinition %s without objects: %w", o.found.Name, err)
	}
	return nil
}

// delete deletes the tenant's CRD with its objects.
func (s *Syncer) delete(ctx context.Context, o observation) error {
	if err := s.cluster.GetClient().Delete(ctx, o.found, asObserved(o)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete CustomResourceDefinition %s: %w", o.found.Name, err)
	}
	return nil
}

// replace keeps the tenant's own CRD aside, and replaces it by the copy unless
// it has changed meanwhile.
func (s *Syncer) replace(ctx context.Context, of *subject, o observation) error {
	if err := checkSwap(o.found, of.published.definition); err != nil {
		return s.collide(ctx, o, err)
	}
	switch err := s.vault.keep(ctx, of.name, &o.found.Spec); {
	case errors.Is(err, errTooLarge):
		return s.collide(ctx, o, err)
	case err != nil:
		return err
	}
	return s.write(ctx, o, of.desired, o.record.Mark, of.published.definition)
}

// rewrite rewrites all objects in the version that the tenant's own CRD stores,
// so that the CRD needs no other.
func (s *Syncer) rewrite(ctx context.Context, of *subject, o observation) error {
	reopened := reopenedSpec(of.own, o.found.Status.StoredVersions)
	if !equal(&o.found.Spec, reopened) {
		return s.enter(ctx, of, o, restoring) // the tenant has changed it
	}
	reached := func(token string) error { return s.reach(ctx, of, o, token) }
	if err := s.objects(o.found, reopenedGate).rewrite(ctx, o.record.After, reached); err != nil {
		return err
	}
	trimmed := o.found.DeepCopy()
	trimmed.Status.StoredVersions = storageOf(of.own)
	if err := s.cluster.GetClient().Status().Update(ctx, trimmed); err != nil {
		return fmt.Errorf("update the stored versions of CustomResourceDefinition %s: %w", of.name, err)
	}
	return nil
}

// maxToken is the maximum length of a token in a record. That of an apiserver
// has the name of an object.
const maxToken = 1 << 10

// reach records which objects are rewritten next, so that another syncer
// continues there.
func (s *Syncer) reach(ctx context.Context, of *subject, o observation, token string) error {
	if len(token) > maxToken {
		return nil
	}
	reached := *o.record
	reached.After = token
	return s.record(ctx, of, &reached)
}
