package syncdown

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// answers is a cluster that answers with one ConfigMap, if it has one, and notes
// each request.
type answers struct {
	cluster.Cluster
	client.Client
	name  string
	has   *corev1.ConfigMap
	err   error
	asked *[]string
}

func (a *answers) GetAPIReader() client.Reader { return a }

func (a *answers) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	*a.asked = append(*a.asked, a.name)
	switch {
	case a.err != nil:
		return a.err
	case a.has == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	a.has.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func TestContentsOfBoth(t *testing.T) {
	replaced := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.UID = "another-uid"
		return cm
	}
	unreachable := errors.New("no route to host")
	both := []string{"super", "tenant"}
	for name, tc := range map[string]struct {
		tenant, super       *corev1.ConfigMap
		tenantErr, superErr error
		asked               []string
		found               bool
	}{
		"both sides":                          {tenant: kindstest.Settings(), super: kindstest.CopyOf(kindstest.Settings()), asked: both, found: true},
		"a copy that the cache has, and gone": {tenant: kindstest.Settings(), asked: both[:1]},
		"another copy":                        {tenant: kindstest.Settings(), super: replaced(kindstest.CopyOf(kindstest.Settings())), asked: both[:1]},
		"no answer of the super cluster":      {tenant: kindstest.Settings(), superErr: unreachable, asked: both[:1]},
		"a tenant's object that is gone":      {super: kindstest.CopyOf(kindstest.Settings()), asked: both},
		"another object of the tenant":        {tenant: replaced(kindstest.Settings()), super: kindstest.CopyOf(kindstest.Settings()), asked: both},
		"no answer of the tenant":             {super: kindstest.CopyOf(kindstest.Settings()), tenantErr: unreachable, asked: both},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			tenant := &answers{name: "tenant", has: tc.tenant, err: tc.tenantErr, asked: &asked}
			super := &answers{name: "super", has: tc.super, err: tc.superErr, asked: &asked}
			c := &contents{
				TenantObjects: &session.TenantObjects{Client: tenant},
				SuperObjects:  session.NewSuperObjects(&session.SuperCluster{API: super}),
			}
			blue := kindstest.Blue()
			cached := session.Objects{
				Key: kindstest.SettingsKey(), SuperKey: blue.SuperKey(kindstest.SettingsKey()), Identity: &blue,
				Tenant: kindstest.Settings(), Super: kindstest.CopyOf(kindstest.Settings()),
			}
			o, found, err := c.ofBoth(t.Context(), kindstest.Typed(kindstest.Needed()), cached)
			if want := errors.Join(tc.superErr, tc.tenantErr); (err == nil) != (want == nil) || found != tc.found {
				t.Fatalf("found %t, error %v; want %t and %v", found, err, tc.found, want)
			}
			if !slices.Equal(asked, tc.asked) {
				t.Errorf("asked %v, want %v", asked, tc.asked)
			}
			if found && o.Tenant.(*corev1.ConfigMap).Data["color"] != "blue" {
				t.Errorf("the tenant's contents are %v", o.Tenant)
			}
		})
	}
}

// occupied is a validator that is validating another object.
type occupied struct{ guard.Validator }

func (occupied) Reserve(ctx context.Context, _ client.Object) (context.Context, func(), error) {
	return ctx, nil, queue.ErrNotItsTurn
}

// TestContentsAreNotReadToWait checks that an object which has to wait for the
// validation of another does so before its contents are read.
func TestContentsAreNotReadToWait(t *testing.T) {
	var asked []string
	tenant := &answers{name: "tenant", has: kindstest.Settings(), asked: &asked}
	c := &creator{
		contents: &contents{TenantObjects: &session.TenantObjects{Client: tenant}},
		guard:    &guard.Guard{Validator: occupied{}},
	}
	err := c.create(t.Context(), kindstest.Typed(kindstest.Needed()), session.Objects{Key: kindstest.SettingsKey(), Tenant: kindstest.Settings()})
	if !errors.Is(err, queue.ErrNotItsTurn) || len(asked) > 0 {
		t.Errorf("asked %v, error %v", asked, err)
	}
}
