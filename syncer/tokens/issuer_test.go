package tokens

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// superCluster has the Secrets that tokens are kept in, and notes what is
// written and enqueued.
type superCluster struct {
	kept    map[client.ObjectKey]client.Object
	applied []*corev1ac.SecretApplyConfiguration
	deleted []string
	// unwritten is the error of each write.
	unwritten error
	enqueued  []client.ObjectKey
}

// apiserver is a tenant's. It records the requests.
type apiserver struct {
	client.SubResourceClient
	requested []authenticationv1.TokenRequestSpec
	accounts  []string
	// issues are the tokens by their audience.
	issues map[string]authenticationv1.TokenRequestStatus
	failed error
}

func (c *superCluster) SuperObject(_ context.Context, _ *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	return c.kept[key], nil
}

func (c *superCluster) EachKeptTokens(_ context.Context, f func(client.Object)) error {
	for _, kept := range c.kept {
		f(kept)
	}
	return nil
}

func (c *superCluster) Apply(_ context.Context, _ string, secret runtime.ApplyConfiguration) error {
	applied := secret.(*corev1ac.SecretApplyConfiguration)
	c.applied = append(c.applied, applied)
	applied.WithUID("secret-uid").WithResourceVersion("8") // the answer
	return c.unwritten
}

func (c *superCluster) Delete(_ context.Context, _ *kinds.Kind, secret client.Object, _ *int64) error {
	c.deleted = append(c.deleted, secret.GetName())
	return c.unwritten
}

func (a *apiserver) SubResource(string) client.SubResourceClient { return a }

func (a *apiserver) Create(_ context.Context, account, request client.Object, _ ...client.SubResourceCreateOption) error {
	asked := request.(*authenticationv1.TokenRequest)
	a.accounts = append(a.accounts, account.GetNamespace()+"/"+account.GetName())
	a.requested = append(a.requested, *asked.Spec.DeepCopy())
	audience := ""
	if len(asked.Spec.Audiences) > 0 {
		audience = asked.Spec.Audiences[0]
	}
	asked.Status = a.issues[audience]
	asked.Spec.ExpirationSeconds = new(int64(99)) // apiservers fill in what they decide
	return a.failed
}

func (c *superCluster) Request(k *kinds.Kind, key client.ObjectKey) queue.Request {
	return queue.Request{Kind: k.Name, Key: key}
}

func (c *superCluster) Enqueue(r queue.Request, priority int) {
	if priority == queue.PriorityLow {
		c.enqueued = append(c.enqueued, r.Key)
	}
}

// issuerOf returns an issuer between these two.
func issuerOf(c *superCluster, a *apiserver) *Issuer {
	return &Issuer{
		secrets: &kinds.Kind{Name: "Tokens"}, reader: c, writer: c, recent: caches.NewRecent(), apiserver: a,
		identity: kindstest.Blue, queue: c, synced: podKind,
	}
}

// podKind is a kind whose objects have tokens when they have a node: one for
// the apiserver, and one for a vault.
func podKind() *kinds.Kind {
	k := kindstest.Typed(kindstest.Rich())
	k.Down.Tokens = func(obj client.Object) kinds.Tokens {
		tokens := kinds.Tokens{ServiceAccount: "robot"}
		if obj.(*corev1.Pod).Spec.NodeName != "" {
			tokens.Wanted = map[string]kinds.Token{"a.0": {}, "b.1": {Audience: "vault", ExpirationSeconds: new(int64(600))}}
		}
		return tokens
	}
	return k
}

// objects are a tenant's pod on a node, and its copy.
func objects() session.Objects {
	pod := kindstest.Version("1")
	pod.UID, pod.Spec.NodeName = "tenant-uid", "node-1"
	copied := kindstest.PodIn("super-default", pod.Name)
	return session.Objects{
		Key: kindstest.WebKey(), SuperKey: client.ObjectKeyFromObject(copied), Tenant: pod, Super: copied,
	}
}

// tokensOf returns the Secret with the tokens of an object, which are renewed
// at some time.
func tokensOf(o session.Objects, uid types.UID, renewal time.Time) map[client.ObjectKey]client.Object {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.SuperKey.Namespace, Name: names.TokenSecret(o.SuperKey.Name), UID: "secret-uid", ResourceVersion: "7",
		Annotations: map[string]string{
			names.UID: string(uid), names.Namespace: o.Key.Namespace, names.TokensOf: o.Key.Name,
			names.TokensRenewal: renewal.Format(time.RFC3339),
		},
	}}
	return map[client.ObjectKey]client.Object{client.ObjectKeyFromObject(kept): kept}
}

// answers are tokens for the apiserver and the vault of these lives.
func answers(apiserver, vault time.Duration) map[string]authenticationv1.TokenRequestStatus {
	in := func(token string, life time.Duration) authenticationv1.TokenRequestStatus {
		return authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(time.Now().Add(life))}
	}
	return map[string]authenticationv1.TokenRequestStatus{"": in("for the apiserver", apiserver), "vault": in("for the vault", vault)}
}

// TestEnsureIssues: one request for each token, bound to the tenant's object,
// and one Secret with all of them that says when to renew the first.
func TestEnsureIssues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, o := &superCluster{}, &apiserver{issues: answers(time.Hour, 10*time.Minute)}, objects()
		s := issuerOf(c, a)
		if err := s.Ensure(t.Context(), podKind(), o); err != nil {
			t.Fatal(err)
		}
		bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "tenant-uid"}
		if diff := cmp.Diff([]authenticationv1.TokenRequestSpec{
			{BoundObjectRef: bound},
			{BoundObjectRef: bound, Audiences: []string{"vault"}, ExpirationSeconds: new(int64(600))},
		}, a.requested); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"default/robot", "default/robot"}, a.accounts); diff != "" {
			t.Errorf("of accounts (-want +got):\n%s", diff)
		}
		if len(c.applied) != 1 {
			t.Fatalf("%d Secrets are written, want 1", len(c.applied))
		}
		got := c.applied[0]
		renewal, err := time.Parse(time.RFC3339, got.Annotations[names.TokensRenewal])
		if in := time.Until(renewal); err != nil || in < 7*time.Minute-time.Second || in > 8*time.Minute {
			t.Errorf("they are renewed in %s, %v; want after 70 to 80 %% of ten minutes", in, err)
		}
		delete(got.Annotations, names.TokensRenewal)
		annotations := kindstest.Blue().Stamp(o.Tenant)
		annotations[names.TokensOf] = "web"
		want := corev1ac.Secret(names.TokenSecret("web"), "super-default").WithUID("secret-uid").WithResourceVersion("8").
			WithLabels(map[string]string{names.VCName: "blue", names.VCNamespace: "", names.Tokens: "true"}).
			WithAnnotations(annotations).WithType(corev1.SecretTypeOpaque).
			WithData(map[string][]byte{"a.0": []byte("for the apiserver"), "b.1": []byte("for the vault")})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Secret (-want +got):\n%s", diff)
		}
		remembered := s.recent.Latest("Tokens", client.ObjectKey{Namespace: "super-default", Name: names.TokenSecret("web")}, nil)
		if remembered == nil || remembered.GetUID() != "secret-uid" {
			t.Errorf("%v is remembered until the cache shows it, want the metadata of the Secret", remembered)
		}
	})
}

// TestEnsureWhenDue: tokens are issued when they are missing, another object's,
// or due, and not for a copy that needs none.
func TestEnsureWhenDue(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	ending, ended := objects(), objects()
	ending.Super.SetDeletionTimestamp(new(metav1.Now()))
	ended.Super.(*corev1.Pod).Status.Phase = corev1.PodSucceeded
	waiting, uncopied := objects(), objects()
	waiting.Tenant.(*corev1.Pod).Spec.NodeName = ""
	uncopied.Super = nil
	broken := tokensOf(objects(), "tenant-uid", future)
	for _, kept := range broken {
		kept.SetAnnotations(map[string]string{names.UID: "tenant-uid", names.TokensRenewal: "soon"})
	}
	tests := map[string]struct {
		o      session.Objects
		kept   map[client.ObjectKey]client.Object
		issued bool
	}{
		"no tokens":                    {objects(), nil, true},
		"no tokens and no copy":        {uncopied, nil, true},
		"no tokens and no node":        {waiting, nil, false},
		"a copy that is being deleted": {ending, nil, false},
		"a copy that has ended":        {ended, nil, false},
		"tokens":                       {objects(), tokensOf(objects(), "tenant-uid", future), false},
		"tokens that are due":          {objects(), tokensOf(objects(), "tenant-uid", past), true},
		"tokens that do not say when":  {objects(), broken, true},
		"those of an earlier object":   {objects(), tokensOf(objects(), "earlier-uid", future), true},
		"due, and the copy has ended":  {ended, tokensOf(objects(), "tenant-uid", past), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &superCluster{kept: tt.kept}
			s := issuerOf(c, &apiserver{issues: answers(time.Hour, time.Hour)})
			if err := s.Ensure(t.Context(), podKind(), tt.o); err != nil {
				t.Fatal(err)
			}
			if got := len(c.applied) > 0; got != tt.issued {
				t.Errorf("issued: %t, want %t", got, tt.issued)
			}
		})
	}
	a := &apiserver{}
	s := issuerOf(&superCluster{}, a)
	if err := s.Ensure(t.Context(), kindstest.Typed(kindstest.Rich()), objects()); err != nil || a.requested != nil {
		t.Errorf("a kind without tokens has requests: %v, %v", a.requested, err)
	}
}

// TestEnsureFails: an error leaves the Secret as it is, and says who can act.
func TestEnsureFails(t *testing.T) {
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	const (
		blocked  = "blocked"
		rejected = "rejected"
		retried  = "retried"
	)
	tests := map[string]struct {
		failed, unwritten error
		life              time.Duration
		want              string
	}{
		"the service account does not exist": {failed: apierrors.NewNotFound(accounts, "robot"), want: blocked},
		"the pod does not exist any more":    {failed: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web"), want: retried},
		"another pod has the name":           {failed: apierrors.NewConflict(accounts, "robot", errors.New("other UID")), want: retried},
		"no answer":                          {failed: errors.New("connection refused"), want: retried},
		"a life that is not offered":         {failed: apierrors.NewInvalid(schema.GroupKind{}, "robot", nil), want: rejected},
		"another account than the pod's":     {failed: apierrors.NewBadRequest("different service account"), want: rejected},
		"a webhook of the tenant forbids it": {failed: apierrors.NewForbidden(accounts, "robot", errors.New("no")), want: rejected},
		"a token that has expired":           {life: -time.Hour, want: rejected},
		"the super cluster does not answer":  {unwritten: errors.New("connection refused"), life: time.Hour, want: retried},
		"the super cluster rejects it": {
			unwritten: apierrors.NewForbidden(accounts, "robot", errors.New("quota")), life: time.Hour, want: rejected,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &superCluster{unwritten: tt.unwritten}
			s := issuerOf(c, &apiserver{failed: tt.failed, issues: answers(tt.life, tt.life)})
			err := s.Ensure(t.Context(), podKind(), objects())
			got := retried
			switch {
			case err == nil:
				t.Fatal("there is no error")
			case pending.IsUnready(err):
				got = blocked
			case pending.IsRejection(err):
				got = rejected
			}
			if got != tt.want {
				t.Errorf("%v is %s, want %s", err, got, tt.want)
			}
			if tt.unwritten == nil && c.applied != nil {
				t.Errorf("%v is written", c.applied)
			}
			if key := (client.ObjectKey{Namespace: "super-default", Name: names.TokenSecret("web")}); s.recent.Latest("Tokens", key, nil) != nil {
				t.Error("a Secret is remembered that was not written")
			}
		})
	}
}

// TestDrop: tokens are deleted when neither the object nor its copy is left.
func TestDrop(t *testing.T) {
	future := time.Now().Add(time.Hour)
	gone, copied, declared := objects(), objects(), objects()
	gone.Tenant, gone.Super = nil, nil
	copied.Tenant = nil
	declared.Super = nil
	tests := map[string]struct {
		o       session.Objects
		kept    map[client.ObjectKey]client.Object
		deleted []string
	}{
		"both are gone":                       {gone, tokensOf(gone, "tenant-uid", future), []string{names.TokenSecret("web")}},
		"both are gone, and so is the Secret": {gone, nil, nil},
		"there is a copy":                     {copied, tokensOf(copied, "tenant-uid", future), nil},
		"there is the tenant's object":        {declared, tokensOf(declared, "tenant-uid", future), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &superCluster{kept: tt.kept}
			s := issuerOf(c, &apiserver{})
			if err := s.Drop(t.Context(), podKind(), tt.o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.deleted, c.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			for key, kept := range tt.kept {
				if left := s.recent.Latest("Tokens", key, kept); (left == nil) != (tt.deleted != nil) {
					t.Errorf("%v is left in what is known", left)
				}
			}
		})
	}
	c := &superCluster{kept: tokensOf(gone, "tenant-uid", future), unwritten: errors.New("connection refused")}
	s := issuerOf(c, &apiserver{})
	if err := s.Drop(t.Context(), podKind(), gone); err == nil {
		t.Error("a failed deletion has no error")
	}
	for key, kept := range c.kept {
		if s.recent.Latest("Tokens", key, kept) == nil {
			t.Error("a Secret counts as deleted that was not")
		}
	}
	if err := s.Drop(t.Context(), kindstest.Typed(kindstest.Rich()), gone); err != nil {
		t.Errorf("a kind without tokens: %v", err)
	}
}

func TestEnqueueRenewals(t *testing.T) {
	due, later := objects(), objects()
	later.Key.Name, later.SuperKey.Name = "later", "later"
	c := &superCluster{kept: tokensOf(due, "tenant-uid", time.Now().Add(-time.Second))}
	maps.Copy(c.kept, tokensOf(later, "tenant-uid", time.Now().Add(time.Minute)))
	s := issuerOf(c, &apiserver{})
	s.EnqueueRenewals(t.Context())
	if diff := cmp.Diff([]client.ObjectKey{due.Key}, c.enqueued); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
	c.enqueued, s.synced = nil, func() *kinds.Kind { return nil }
	if s.EnqueueRenewals(t.Context()); c.enqueued != nil {
		t.Errorf("%v are enqueued of a kind that is not synced", c.enqueued)
	}
}
