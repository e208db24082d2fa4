package syncdown

import (
	"testing"

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
