package custom

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// side is a cluster with at most one definition, which is established when it
// is created. It allows the verbs.
type side struct {
	cluster.Cluster
	client.Client
	definition *apiextensionsv1.CustomResourceDefinition
	lacks      bool

	mu    sync.Mutex
	verbs []string
}

func (s *side) allow(verbs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verbs = verbs
}

func (s *side) GetClient() client.Client    { return s }
func (s *side) GetAPIReader() client.Reader { return s }

func (s *side) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.definition == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}
	s.definition.DeepCopyInto(obj.(*apiextensionsv1.CustomResourceDefinition))
	return nil
}

func (s *side) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch obj := obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		obj.Status.Allowed = slices.Contains(s.verbs, obj.Spec.ResourceAttributes.Verb)
	case *apiextensionsv1.CustomResourceDefinition:
		s.definition = obj.DeepCopy()
		establish(s.definition)
	}
	return nil
}

func establish(d *apiextensionsv1.CustomResourceDefinition) {
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
}

// tenant records what a syncer does for a tenant.
type tenant struct {
	side
	learned  []*meta.RESTMapping
	problems []string
	synced   []*kinds.Kind
	err      error // of WatchTenant
}

func (t *tenant) Learn(m *meta.RESTMapping) { t.learned = append(t.learned, m) }

func (t *tenant) Problem(about, message string) {
	t.problems = append(t.problems, strings.TrimSuffix(about+": "+message, ": "))
}

func (t *tenant) WatchTenant(*kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error) {
	return synced{}, t.err
}

func (t *tenant) SyncKind(k *kinds.Kind) error {
	t.synced = append(t.synced, k)
	return nil
}

// widgetSyncer returns the syncer of the resource that widgets defines, between
// these sides.
func widgetSyncer(super *side, t *tenant) (*Syncer, *watches) {
	w := &watches{}
	resources := NewResources(super, w, Options{Build: build, Interval: time.Minute, Timeout: time.Second})
	return NewSyncer(resources, t, t, tenancyv1alpha1.CustomResourceSync{
		Group: "example.com", Resource: "widgets", Version: "v1", Direction: tenancyv1alpha1.SyncDown,
	}), w
}

// serving is a tenant that has a copy of the definition, and serves it.
func serving(err error) *tenant {
	d, _ := tenantDefinition(widgets(), "v1")
	establish(d)
	return &tenant{side: side{definition: d}, err: err}
}

func allVerbs() []string {
	return []string{"list", "watch", "get", "create", "patch", "delete"}
}

func TestACustomResourceIsSyncedOnce(t *testing.T) {
	super, blue := &side{definition: widgets(), verbs: allVerbs()}, &tenant{}
	s, w := widgetSyncer(super, blue)
	if err := s.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "does not serve") {
		t.Errorf("the definition was created just now: %v", err)
	}
	for range 2 {
		if err := s.reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(blue.synced) != 1 || w.opened != 1 {
		t.Fatalf("the kind was synced %d times, and %d watches were opened", len(blue.synced), w.opened)
	}
	want := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	if k := blue.synced[0]; k.GVK != want || k.Resource != "widgets.example.com" {
		t.Errorf("synced is %s, %s", k.GVK, k.Resource)
	}
	if blue.definition == nil || len(blue.learned) == 0 || blue.learned[0].GroupVersionKind != want {
		t.Errorf("the tenant has the definition %v, and its client knows %v", blue.definition, blue.learned)
	}
}

func TestWhatPreventsTheSyncOfACustomResource(t *testing.T) {
	watchFails := errors.New("the tenant cannot be watched")
	for name, tc := range map[string]struct {
		super  *side
		tenant *tenant
		want   string
		opened int
	}{
		"no definition in the super cluster": {&side{verbs: allVerbs()}, &tenant{}, "the super cluster's definition: ", 0},
		"no rights":                          {&side{definition: widgets(), verbs: []string{"list", "watch", "get"}}, serving(nil), "lacks the rights to create, patch, delete", 0},
		"a definition that is not served":    {&side{definition: widgets(), verbs: allVerbs()}, &tenant{side: side{definition: widgets()}}, "does not serve widgets.example.com yet", 0},
		"another definition": {
			&side{definition: widgets(), verbs: allVerbs()},
			&tenant{side: side{definition: widgets(establish, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.Kind = "Gadget" })}},
			"a definition of its own", 0,
		},
		"the tenant's watch": {&side{definition: widgets(), verbs: allVerbs()}, serving(watchFails), watchFails.Error(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := widgetSyncer(tc.super, tc.tenant)
			if err := s.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if len(tc.tenant.synced) > 0 || w.opened != tc.opened || w.closed != tc.opened {
				t.Errorf("synced are %v; %d watches were opened and %d closed", tc.tenant.synced, w.opened, w.closed)
			}
		})
	}
}

// TestRun: a problem is reported and reported as solved, with the time between,
// and the watch is closed in the end.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		super, blue := &side{definition: widgets()}, serving(nil)
		s, w := widgetSyncer(super, blue)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		synctest.Wait()
		if len(blue.problems) != 1 || !strings.HasPrefix(blue.problems[0], "widgets.example.com: ") {
			t.Fatalf("reported are %q", blue.problems)
		}
		super.allow(allVerbs())
		time.Sleep(2 * time.Second) // the first retry comes after about one
		synctest.Wait()
		if len(blue.problems) != 2 || blue.problems[1] != "widgets.example.com" || len(blue.synced) != 1 {
			t.Errorf("reported are %q", blue.problems)
		}
		cancel()
		<-ended
		if w.opened != 1 || w.closed != 1 {
			t.Errorf("%d watches were opened and %d closed", w.opened, w.closed)
		}
	})
}
