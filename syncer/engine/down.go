package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// objects are the two sides of one object; nil where there is none. They are shared: nobody changes them.
type objects struct {
	key, superKey client.ObjectKey
	tenant, super client.Object
	// identity is what the tenant was when they were read.
	identity *translate.Tenant
}

// syncDown brings one object of a kind that flows down closer to where it should be.
func (s *session) syncDown(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	defer s.locks.Lock(k.Name, key)()
	o, err := s.read(ctx, k, key)
	if err != nil {
		return err
	}
	p, err := s.judge(ctx, k, o)
	if err != nil {
		return err
	}
	do := decide(p)
	if k.ByMetadata() && do != update {
		s.agreements.forget(k, key)
	}
	switch do {
	case create:
		return s.create(ctx, k, o)
	case update:
		return s.updateBoth(ctx, k, o)
	case remove:
		return s.retract(ctx, k, o, p)
	case retire:
		return guard.DeleteObject(ctx, s.client, o.tenant, k.Down.Mirror.GracePeriodSeconds(o.super))
	case finish:
		return s.finish(ctx, k, o)
	case conflict:
		return pending.Reject(guard.ErrForeign)
	case nothing:
		return s.dropTokens(ctx, k, o)
	}
	return nil
}

// read reads both sides from the caches.
func (s *session) read(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (objects, error) {
	identity := s.tenant.Load()
	o := objects{key: key, superKey: k.Down.SuperKey(*identity, key), identity: identity}
	var err error
	if o.tenant, err = s.tenantObject(ctx, k, key); err != nil {
		return o, err
	}
	o.super, err = s.superObject(ctx, k, o.superKey)
	return o, err
}

// judge sees in the objects what the decision depends on.
func (s *session) judge(ctx context.Context, k *kinds.Kind, o objects) (pair, error) {
	p := pair{tenant: stand(o.tenant), super: stand(o.super), mirrored: k.Down.Mirror != nil}
	if o.super != nil {
		origin := translate.OriginOf(o.super)
		p.same = of(origin, o.tenant)
		p.foreign = s.foreign(origin, o.tenant)
	}
	p.hurried = p.mirrored && s.hurried(k.Down.Mirror, o)
	if o.tenant == nil {
		return p, nil
	}
	p.started = p.mirrored && k.Down.Mirror.Started(o.tenant)
	var err error
	p.wanted, err = s.wanted(ctx, k, o.tenant)
	return p, err
}

// hurried says whether a copy is being deleted and has more time for it than the tenant gives it.
func (s *session) hurried(m *kinds.Mirror[client.Object], o objects) bool {
	if stand(o.super) != deleting {
		return false
	}
	wanted, given := s.timeToEnd(m, o), m.GracePeriodSeconds(o.super)
	return wanted != nil && given != nil && *wanted < *given
}

// timeToEnd is the grace period in seconds that the tenant gives a copy, within what its policy allows; nil if it gives none. An
// object that was deleted by force leaves its copy no time, since its name may be used again.
func (s *session) timeToEnd(m *kinds.Mirror[client.Object], o objects) *int64 {
	of := translate.OriginOf(o.super).UID
	switch {
	case o.tenant != nil && o.tenant.GetUID() == of:
		return s.identity().GracePeriod(m.GracePeriodSeconds(o.tenant))
	case s.forced.Has(of, time.Now()):
		return new(int64(0))
	}
	return nil
}

// of says whether a copy is that of this tenant's object.
func of(origin translate.Origin, tenant client.Object) bool {
	return tenant != nil && origin.UID == tenant.GetUID()
}

// foreign says whether an object of the super cluster, where a copy of this tenant's object should be, is not the tenant's. One that
// lost the note of whose it is can still be told by the UID.
func (s *session) foreign(origin translate.Origin, tenant client.Object) bool {
	return origin.Cluster != s.identity().Key && (origin.Cluster != "" || !of(origin, tenant))
}

// stand says how an object stands.
func stand(obj client.Object) presence {
	switch {
	case obj == nil:
		return absent
	case obj.GetDeletionTimestamp() != nil:
		return deleting
	}
	return present
}

// wanted says whether a tenant's object belongs in the super cluster.
func (s *session) wanted(ctx context.Context, k *kinds.Kind, obj client.Object) (bool, error) {
	mode := s.identity().Mode(k.Name)
	if mode == tenancyv1alpha1.SyncOff || k.Down.Skip(s.view(ctx, obj.GetNamespace()), obj) {
		return false, nil
	}
	if !k.Down.OnDemand || mode == tenancyv1alpha1.SyncAll {
		return true, nil
	}
	return s.referred(ctx, k.Name, client.ObjectKeyFromObject(obj))
}

// create makes the copy, after all that it needs. Where that is not there yet, its event leads here again.
func (s *session) create(ctx context.Context, k *kinds.Kind, o objects) error {
	var err error
	if o.tenant, err = s.tenantContents(ctx, k, o); err != nil || o.tenant == nil {
		return err
	}
	if err := s.admit(ctx, k, o); err != nil {
		return err
	}
	ready, err := s.prepare(ctx, k, o.tenant)
	if err != nil || !ready {
		return err
	}
	desired, err := s.desired(ctx, k, o)
	if err != nil {
		return err
	}
	if err := s.createCopy(ctx, k, o, desired); err != nil {
		return err
	}
	if !k.Down.OnDemand {
		s.wake(k, o.tenant)
	}
	return cmp.Or(s.furnish(ctx, k, o), s.omitted(ctx, k, o))
}

// createCopy creates the copy with its tokens, if there is room for it, or takes over the object that has its name.
func (s *session) createCopy(ctx context.Context, k *kinds.Kind, o objects, desired client.Object) error {
	release, err := s.reserve(k, desired, nil)
	if err != nil {
		return err
	}
	if err := s.ensureTokens(ctx, k, o); err != nil {
		release()
		return err
	}
	err = s.guard.Create(ctx, k, desired)
	if err == nil {
		s.createdCopy(k, o, desired)
		return nil
	}
	release()
	if s.isTaken(ctx, k, o, err) {
		return s.takeOver(ctx, k, o, desired)
	}
	return pending.Classify(err)
}

// omitted rejects the part of a tenant's object that its copy does not have.
func (s *session) omitted(ctx context.Context, k *kinds.Kind, o objects) error {
	if err := k.Down.Omitted(s.view(ctx, o.key.Namespace), o.tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

// isTaken says whether a copy could not be made because its name is taken. An apiserver allocates what a copy asks for, such as an address,
// before it looks at the name; so a copy that is there already can look like one that asks for what another one has.
func (s *session) isTaken(ctx context.Context, k *kinds.Kind, o objects, err error) bool {
	if !apierrors.IsInvalid(err) {
		return apierrors.IsAlreadyExists(err)
	}
	found, err := s.liveCopy(ctx, k, o.superKey)
	return err == nil && found != nil
}

// admit says why no copy may be made of a tenant's object.
func (s *session) admit(ctx context.Context, k *kinds.Kind, o objects) error {
	if k.Down.Reserved(o.key.Name) {
		return pending.Reject(errReservedName)
	}
	if k.Down.Admit == nil {
		return nil
	}
	if err := k.Down.Admit(s.view(ctx, o.key.Namespace), o.tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

// prepare ensures the namespace of an object and what it refers to, and reports whether what is required exists.
func (s *session) prepare(ctx context.Context, k *kinds.Kind, obj client.Object) (bool, error) {
	if obj.GetNamespace() == "" {
		return true, nil
	}
	ready, err := s.ensure(ctx, namespaceKind, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil || !ready {
		return false, err
	}
	if err := s.ensureOwn(ctx, obj.GetNamespace()); err != nil {
		return false, err
	}
	return s.resolve(ctx, k, obj)
}

// desired is the copy that the super cluster should hold.
func (s *session) desired(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	v := s.view(ctx, o.key.Namespace)
	desired, err := k.Down.Desired(v, o.tenant)
	if err != nil {
		return nil, pending.Reject(err)
	}
	meta := v.Tenant.Down(k.Name, o.tenant, o.superKey)
	translate.Merge(desired, meta)
	desired.SetName(meta.Name)
	desired.SetNamespace(meta.Namespace)
	if !s.patches.Has(k.Name) {
		return desired, nil
	}
	return desired, s.patch(ctx, k, desired, o.tenant)
}

// patch rewrites what the admin has rewritten of a copy.
func (s *session) patch(ctx context.Context, k *kinds.Kind, desired, tenant client.Object) error {
	err := s.patches.Apply(ctx, k.Name, desired, tenant, s.identity())
	switch {
	case err == nil:
		translate.Claim(desired)
		return nil
	case ctx.Err() != nil:
		return err
	}
	return pending.Reject(err)
}

// view is what the functions of a kind may look at.
func (s *session) view(ctx context.Context, namespace string) kinds.View {
	return kinds.View{
		Tenant: s.identity(), Namespace: namespace,
		Lookup: s.behind(ctx), Digest: s.digestsIn(ctx, namespace),
		Copy: s.copyIn(ctx, namespace), Rivals: s.rivals(ctx), Offers: s.offers(ctx), RunsAt: s.runsAt(ctx),
	}
}

// offers says whether the tenant is offered the class of a kind and name.
func (s *session) offers(ctx context.Context) func(kind, name string) bool {
	return func(kind, name string) bool {
		k := s.kind(kind)
		if k == nil || k.Up == nil || s.identity().Mode(kind) == tenancyv1alpha1.SyncOff {
			return false
		}
		super, err := s.superObject(ctx, k, client.ObjectKey{Name: name})
		return err == nil && super != nil && s.identity().Offers(kind, super)
	}
}

// errVanished says that what kept a copy from being made went meanwhile. It is tried again.
var errVanished = errors.New("the object of this name in the super cluster is gone by now")

// takeOver looks at the object that has the name of a copy and that the cache does not show. It may be our own, just made or
// robbed of its labels; one that the super cluster made by itself, which is adopted if the kind allows; or somebody else's.
func (s *session) takeOver(ctx context.Context, k *kinds.Kind, o objects, desired client.Object) error {
	found, err := s.liveCopy(ctx, k, o.superKey)
	if err != nil {
		return err
	}
	if found == nil {
		return errVanished
	}
	switch origin := translate.OriginOf(found); {
	case !s.foreign(origin, o.tenant):
		s.superRecent.Put(k.Name, k.CachedSuper(found))
		if !of(origin, o.tenant) {
			return nil
		}
	case origin.Cluster != "" || !k.Down.Adopt(found):
		return pending.Reject(guard.ErrForeign)
	}
	_, err = s.patchSuper(ctx, k, found, desired)
	return err
}

// liveCopy asks the super cluster for an object; nil if there is none.
func (s *session) liveCopy(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	found := k.Fresh()
	if err := s.super.GetAPIReader().Get(ctx, key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

// update brings the copy to what the tenant declares and its status up to the tenant, and returns both as they are then. What is refused
// on the way down keeps nothing from coming up.
func (s *session) update(ctx context.Context, k *kinds.Kind, o objects) (objects, error) {
	desired, err := s.desired(ctx, k, o)
	switch {
	case errors.As(err, new(kinds.EvictionError)):
		return o, s.evict(ctx, k, o, err)
	case err == nil && k.Down.Replace(o.super, desired):
		return o, s.remove(ctx, k, o)
	case err == nil && stand(o.super) == present && s.copyDiffers(ctx, k, o, desired):
		o.super, err = s.bringResolved(ctx, k, o, desired)
	}
	if err != nil && !pending.IsRejection(err) {
		return o, err
	}
	var why error
	if o.tenant, why = s.bringUp(ctx, k, o); o.tenant == nil {
		return o, cmp.Or(why, err)
	}
	// Tokens say which node the object is on. What cannot be renewed keeps nothing from coming up: the old tokens are good for a while.
	return o, cmp.Or(why, err, s.ensureTokens(ctx, k, o), s.furnish(ctx, k, o), s.omitted(ctx, k, o))
}

// bringResolved changes the copy where it differs, if it refers only to copies of the tenant, and returns the changed copy.
func (s *session) bringResolved(ctx context.Context, k *kinds.Kind, o objects, desired client.Object) (client.Object, error) {
	if _, err := s.resolve(ctx, k, o.tenant); err != nil {
		return o.super, err
	}
	if len(k.Down.Parts) == 0 {
		return s.bringChanges(ctx, k, o, desired)
	}
	release, err := s.reserve(k, mergedSuper(k, o.super, desired), o.super)
	if err != nil {
		return o.super, err
	}
	changed, err := s.bringChanges(ctx, k, o, desired)
	if err != nil {
		release()
	}
	return changed, err
}

// bringChanges changes the copy where it differs, and returns it as it is then. What is refused of it does not hold up the
// rest.
func (s *session) bringChanges(ctx context.Context, k *kinds.Kind, o objects, desired client.Object) (client.Object, error) {
	changed, why := s.patchSuper(ctx, k, o.super, desired)
	if why == nil {
		o.super = changed
	} else if !pending.IsRejection(why) {
		return nil, why
	}
	for _, sub := range k.Down.Subresources {
		var err error
		o.super, err = s.patchSubresource(ctx, k, o, sub)
		if err != nil && !pending.IsRejection(err) {
			return nil, err
		}
		why = cmp.Or(why, err)
		if denied := sub.Admit(s.view(ctx, o.key.Namespace), o.super, o.tenant); denied != nil {
			why = pending.Reject(errors.Join(why, denied))
		}
	}
	return o.super, why
}

// copyDiffers reports whether the copy does not hold what it should, or what it would have to if that were admitted.
func (s *session) copyDiffers(ctx context.Context, k *kinds.Kind, o objects, desired client.Object) bool {
	merged := mergedSuper(k, o.super, desired)
	for _, sub := range k.Down.Subresources {
		v := s.view(ctx, o.key.Namespace)
		if sub.Admit(v, o.super, o.tenant) != nil {
			return true
		}
		sub.Merge(v, merged, o.tenant)
	}
	return !wire.Equal(merged, o.super)
}

// patchSuper changes the copy if it differs, and returns it as it is then.
func (s *session) patchSuper(ctx context.Context, k *kinds.Kind, super, desired client.Object) (client.Object, error) {
	merged := mergedSuper(k, super, desired)
	if wire.Equal(merged, super) {
		return super, nil
	}
	if err := s.guard.Patch(ctx, k, merged, super); err != nil {
		return nil, pending.Classify(err)
	}
	s.superRecent.Put(k.Name, k.CachedSuper(merged))
	return merged, nil
}

// mergedSuper is the copy with what it should hold.
func mergedSuper(k *kinds.Kind, super, desired client.Object) client.Object {
	merged := super.DeepCopyObject().(client.Object)
	k.Down.Merge(merged, desired)
	translate.Merge(merged, metav1.ObjectMeta{Labels: desired.GetLabels(), Annotations: desired.GetAnnotations()})
	return merged
}

// retract takes away a copy that should not be there. An object that is to have none any more says nothing of the one that it
// had.
func (s *session) retract(ctx context.Context, k *kinds.Kind, o objects, p pair) error {
	if err := s.allowRemoval(ctx, k, o, p); err != nil {
		return err
	}
	if o.tenant != nil && !p.wanted && !p.mirrored {
		if err := s.showStatus(ctx, k, o.tenant, k.Fresh()); err != nil {
			return err
		}
	}
	return s.remove(ctx, k, o)
}

// remove deletes the copy, a mirrored one in the time that the tenant gives it.
func (s *session) remove(ctx context.Context, k *kinds.Kind, o objects) error {
	var grace *int64
	if m := k.Down.Mirror; m != nil {
		grace = s.timeToEnd(m, o)
	}
	return s.guard.Delete(ctx, k, o.super, grace)
}

// finish ends the tenant's object, whose copy is gone. Where the tenant did not ask for that, the super cluster has the last
// word: its cache shows only what carries our labels, and somebody may have taken them away.
func (s *session) finish(ctx context.Context, k *kinds.Kind, o objects) error {
	if o.tenant.GetDeletionTimestamp() == nil {
		found, err := s.liveCopy(ctx, k, o.superKey)
		if err != nil {
			return err
		}
		if found != nil {
			return s.reclaim(ctx, k, o)
		}
	}
	if err := guard.DeleteObject(ctx, s.client, o.tenant, ptr.To[int64](0)); err != nil {
		return err
	}
	s.tenantRecent.Remove(k.Name, o.tenant)
	// Its last event may have come already.
	return s.dropTokens(ctx, k, objects{key: o.key, superKey: o.superKey})
}

// reclaim gives a copy its labels back.
func (s *session) reclaim(ctx context.Context, k *kinds.Kind, o objects) error {
	desired, err := s.desired(ctx, k, o)
	if err != nil {
		return err
	}
	return s.takeOver(ctx, k, o, desired)
}

// bringUp shows the tenant the node and the status of the copy, each with a request only if it differs, and returns the tenant's object,
// which is on its node then; nil if it is gone.
func (s *session) bringUp(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	tenant, err := s.bind(ctx, k, o)
	if err != nil || tenant == nil {
		return nil, err
	}
	tenant, err = s.patchTenant(ctx, k, tenant, s.shownBack(ctx, k, tenant, o.super))
	if err != nil || tenant == nil {
		return nil, err
	}
	return tenant, s.showStatus(ctx, k, tenant, o.super)
}

// showStatus shows the tenant the status of a copy.
func (s *session) showStatus(ctx context.Context, k *kinds.Kind, tenant, super client.Object) error {
	if k.Down.Status == nil {
		return nil
	}
	shown := tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view(ctx, tenant.GetNamespace()), shown, super)
	if k.Down.Same(shown, tenant) {
		return nil
	}
	return s.patchTenantStatus(ctx, k, tenant, shown)
}

// shownBack is the tenant's object with what the copy says of it beside its status; the same object where that is nothing.
func (s *session) shownBack(ctx context.Context, k *kinds.Kind, tenant, super client.Object) client.Object {
	if len(s.identity().Transparent) == 0 && k.Down.Back == nil {
		return tenant
	}
	shown := tenant.DeepCopyObject().(client.Object)
	s.identity().Up(shown, super)
	if k.Down.Back != nil {
		k.Down.Back(s.view(ctx, tenant.GetNamespace()), shown, super)
	}
	return shown
}

// bind binds the tenant's object to the node that its copy is on, and returns it as it is then; nil if it is gone.
func (s *session) bind(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	m := k.Down.Mirror
	if m == nil || m.Node(o.super) == "" || o.tenant.GetDeletionTimestamp() != nil {
		return o.tenant, nil
	}
	node := m.Node(o.super)
	if err := s.ensureNode(ctx, node); err != nil {
		return nil, err
	}
	if m.Node(o.tenant) != "" {
		return o.tenant, nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name, UID: o.tenant.GetUID()},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := s.client.SubResource("binding").Create(ctx, o.tenant, binding); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	bound := m.Bound(o.tenant, node)
	s.tenantRecent.Assume(k.Name, bound)
	return bound, nil
}
