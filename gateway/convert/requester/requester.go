// Package requester carries the user of a tenant's request to the admission of
// the super cluster, which calls the gateway back and does not know the tenant's
// users: the gateway sends the request as its own account, with the user as an
// extra value of that.
package requester

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Account is the one as which the gateway sends a request. Without groups, it is
// a service account.
type Account struct {
	Name   string
	Groups []string
}

// SetHeader makes a request of the account one that is for a user of the tenant.
// The account impersonates itself, which adds the extra value.
func (a Account) SetHeader(header http.Header, who user.Info) error {
	data, err := json.Marshal(InfoOf(who))
	if err != nil {
		return fmt.Errorf("write the user of a request: %w", err)
	}
	header.Set(authenticationv1.ImpersonateUserHeader, a.Name)
	for _, group := range a.Groups {
		header.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
	extra := authenticationv1.ImpersonateUserExtraHeaderPrefix + url.PathEscape(names.ConvertedUser)
	header.Set(extra, base64.RawURLEncoding.EncodeToString(data))
	return nil
}

// Read returns the tenant's user for whom a user of the super cluster sent a
// request, and false if it was for none. It trusts the user.
func Read(super authenticationv1.UserInfo) (user.Info, bool) {
	values := super.Extra[names.ConvertedUser]
	if len(values) != 1 {
		return nil, false
	}
	data, err := base64.RawURLEncoding.DecodeString(values[0])
	if err != nil {
		return nil, false
	}
	var info authenticationv1.UserInfo
	if err := json.Unmarshal(data, &info); err != nil {
		return nil, false
	}
	return identity.UserOf(info), true
}

// InfoOf returns a user in the form of the API.
func InfoOf(who user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	for key, values := range who.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
