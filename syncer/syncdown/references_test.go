package syncdown

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// syncs creates a copy when an object is synced, unless it fails.
type syncs struct {
	super  *session.SuperObjects
	copies map[client.ObjectKey]client.Object
	err    error
	synced []client.ObjectKey
}

func (s *syncs) Sync(_ context.Context, k *kinds.Kind, key client.ObjectKey) error {
	s.synced = append(s.synced, key)
	if copied := s.copies[key]; copied != nil {
		s.super.SuperRecent.Put(k.Name, copied)
	}
	return s.err
}

// between returns the references of a tenant whose super cluster has these
// copies. A ConfigMap is synced as sync does it.
func between(sync *syncs, super ...client.Object) *references {
	settings := kindstest.Typed(kindstest.Needed())
	reader := cachestest.NewReader()
	cachestest.Hold(reader, settings, super...)
	over := &session.SuperCluster{
		Caches: map[kinds.Source]*caches.Reader{kinds.Copies: reader}, Builtin: map[string]*kinds.Kind{settings.Name: settings},
	}
	synced := &session.Kinds{}
	synced.AddKind(settings)
	tenant := session.NewTenant(kindstest.Blue())
	objects := session.NewSuperObjects(over)
	sync.super = objects
	return &references{
		Tenant: tenant, Kinds: synced, SuperObjects: objects, Requests: session.NewRequests(over, tenant, synced, nil, nil), copies: sync,
	}
}

// referring returns a kind whose objects refer to the ConfigMap of kindstest.
func referring(required bool) *kinds.Kind {
	k := kindstest.Plain()
	k.References = func(*corev1.Pod) []kinds.Reference {
		return []kinds.Reference{{Kind: "ConfigMap", Name: kindstest.SettingsKey().Name, Required: required}}
	}
	return k.Erase()
}

func TestResolve(t *testing.T) {
	web := kindstest.PodIn(kindstest.SettingsKey().Namespace, "web")
	copied := kindstest.CopyOf(kindstest.Settings())
	foreign := kindstest.CopyOf(kindstest.Settings(), func(c *corev1.ConfigMap) { c.Annotations = nil })
	failed := errors.New("the super cluster does not answer")
	for name, tc := range map[string]struct {
		super    []client.Object
		syncs    syncs
		required bool
		missing  string
		rejected bool
		err      error
		synced   int
	}{
		"the copy exists":               {super: []client.Object{copied}, required: true},
		"the copy is created":           {syncs: syncs{copies: map[client.ObjectKey]client.Object{kindstest.SettingsKey(): copied}}, required: true, synced: 1},
		"the tenant has no such":        {required: true, missing: "ConfigMap settings", synced: 1},
		"it waits for another one":      {syncs: syncs{err: &pending.BlockedError{On: "Namespace default"}}, required: true, missing: "ConfigMap settings", synced: 1},
		"it cannot be created":          {syncs: syncs{err: failed}, required: true, err: failed, synced: 1},
		"the name is that of a foreign": {super: []client.Object{foreign}, required: true, rejected: true, synced: 1},
	} {
		t.Run(name, func(t *testing.T) {
			missing, err := between(&tc.syncs, tc.super...).resolve(t.Context(), referring(tc.required), web)
			if missing != tc.missing || pending.IsRejection(err) != tc.rejected || !tc.rejected && !errors.Is(err, tc.err) {
				t.Errorf("missing %q, error %v", missing, err)
			}
			if len(tc.syncs.synced) != tc.synced {
				t.Errorf("synced are %v", tc.syncs.synced)
			}
		})
	}
}

// TestReferencesThatCannotBeSynced: a copy may not name objects of the platform.
func TestReferencesThatCannotBeSynced(t *testing.T) {
	web := kindstest.PodIn("default", "web")
	for name, tc := range map[string]struct {
		to       kinds.Reference
		rejected bool
		missing  string
	}{
		"a custom resource that is not synced":         {kinds.Reference{Kind: "Widget.example.com", Name: "w"}, true, ""},
		"a kind that the super cluster does not serve": {kinds.Reference{Kind: "Secret", Name: "s", Required: true}, false, "Secret s"},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindstest.Plain()
			k.References = func(*corev1.Pod) []kinds.Reference { return []kinds.Reference{tc.to} }
			missing, err := between(&syncs{}).resolve(t.Context(), k.Erase(), web)
			if missing != tc.missing || pending.IsRejection(err) != tc.rejected {
				t.Errorf("missing %q, error %v", missing, err)
			}
		})
	}
}
