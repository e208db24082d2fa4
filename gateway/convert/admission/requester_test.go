package admission

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// impersonated returns the user of a request with a header, as an apiserver reads it.
func impersonated(t *testing.T, header http.Header) authenticationv1.UserInfo {
	t.Helper()
	info := authenticationv1.UserInfo{Username: header.Get("Impersonate-User"), Extra: map[string]authenticationv1.ExtraValue{}}
	for name, values := range header {
		if escaped, ok := strings.CutPrefix(strings.ToLower(name), "impersonate-extra-"); ok {
			key, err := url.PathUnescape(escaped)
			if err != nil {
				t.Fatal(err)
			}
			info.Extra[key] = values
		}
	}
	return info
}

func TestClassify(t *testing.T) {
	h := &Handler{IsGateway: func(name string) bool { return name == "system:serviceaccount:vc-system:vc-gateway" }}
	carried := func(account string) authenticationv1.UserInfo {
		header := http.Header{}
		anna := &user.DefaultInfo{Name: "ännä", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}}
		if err := (requester.Account{Name: account}).SetHeader(header, anna); err != nil {
			t.Fatal(err)
		}
		return impersonated(t, header)
	}
	plain := func(name string, groups ...string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: name, Groups: groups, UID: "super"}
	}
	for name, tt := range map[string]struct {
		super authenticationv1.UserInfo
		who   string
		kind  requesterKind
	}{
		"a user of the tenant":          {carried("system:serviceaccount:" + key + ":converted"), "ännä", ofTenant},
		"one, by the gateway itself":    {carried("system:serviceaccount:vc-system:vc-gateway"), "ännä", ofTenant},
		"one, by another tenant":        {carried("system:serviceaccount:other:converted"), "", platform},
		"one, by an account of its own": {carried("system:serviceaccount:" + key + "-shop:converted"), "", platform},
		"no user":                       {plain("system:serviceaccount:" + key + ":converted"), "", unknown},
		"the gateway":                   {plain("system:serviceaccount:vc-system:vc-gateway"), "", platform},
		"a controller":                  {plain("system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccounts", "corp"), "system:serviceaccount:kube-system:replicaset-controller", controller},
		"the syncer":                    {plain("system:serviceaccount:vc-system:vc-syncer"), "", platform},
		"an admin":                      {plain("admin", "system:masters"), "", platform},
	} {
		who, kind := h.classify(key, tt.super)
		if kind != tt.kind || who == nil != (tt.who == "") || who != nil && (who.GetName() != tt.who || who.GetUID() != "") {
			t.Errorf("%s: %v, %v", name, who, kind)
		}
		if kind == controller && !slices.Equal(who.GetGroups(), []string{"system:serviceaccounts"}) {
			t.Errorf("%s: groups %q", name, who.GetGroups())
		}
		if kind == ofTenant && (len(who.GetGroups()) != 2 || who.GetExtra()["k"][0] != "v" || who.GetExtra()[names.ConvertedUser] != nil) {
			t.Errorf("%s: %v", name, who)
		}
	}
}
