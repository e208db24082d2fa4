package syncdown

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

func TestWhoseACopyIs(t *testing.T) {
	const uid = "uid"
	web := kindstest.Named("web")
	web.UID = uid
	for name, tc := range map[string]struct {
		cluster string
		uid     types.UID
		tenant  client.Object
		same    bool
		foreign bool
	}{
		"its own":                               {kindstest.Blue().Key, uid, web, true, false},
		"of an older object":                    {kindstest.Blue().Key, "older", web, false, false},
		"of one that is gone":                   {kindstest.Blue().Key, uid, nil, false, false},
		"robbed of the tenant":                  {"", uid, web, true, false},
		"robbed of the tenant, of an older one": {"", "older", web, false, true},
		"robbed of the tenant, of one gone":     {"", uid, nil, false, true},
		"nobody's":                              {"", "", web, false, true},
		"another tenant's":                      {"another", "uid-2", web, false, true},
		"another tenant's with the same UID":    {"another", uid, web, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			origin := translate.Origin{Cluster: tc.cluster, UID: tc.uid}
			if same, foreign := session.IsCopyOf(origin, tc.tenant), isForeign(kindstest.Blue().Key, origin, tc.tenant); same != tc.same || foreign != tc.foreign {
				t.Errorf("same: %t, foreign: %t; want %t, %t", same, foreign, tc.same, tc.foreign)
			}
		})
	}
}

func TestFinalized(t *testing.T) {
	m := kindstest.Rich().Erase().Down.Mirror
	pod := func(grace *int64, deleted bool, finalizers ...string) client.Object {
		p := kindstest.Named("web")
		p.Finalizers, p.DeletionGracePeriodSeconds = finalizers, grace
		if deleted {
			p.DeletionTimestamp = new(metav1.Now())
		}
		return p
	}
	for name, tc := range map[string]struct {
		tenant client.Object
		want   bool
	}{
		"only finalizers keep it": {pod(new(int64(0)), true, "a"), true},
		"it has time left":        {pod(new(int64(1)), true, "a"), false},
		"it has no time noted":    {pod(nil, true, "a"), false},
		"nothing keeps it":        {pod(new(int64(0)), true), false},
		"it is not being deleted": {pod(new(int64(0)), false, "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isFinalized(m, tc.tenant); got != tc.want {
				t.Errorf("finalized: %t, want %t", got, tc.want)
			}
		})
	}
}
