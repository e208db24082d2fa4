// Package accounts recognizes the service accounts of a converted tenant, which
// are those of its namespaces in the super cluster.
package accounts

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// Accounts are those of one tenant.
type Accounts struct {
	Namer naming.Namer
	// Reviewer asks the super cluster, which has signed the tokens.
	Reviewer *identity.Reviewer
}

// Authenticate returns the user of a token for the tenant's cluster, by the
// tenant's names; nil for a token that is none. The client has a remote address.
func (a Accounts) Authenticate(ctx context.Context, token, remote string) (user.Info, error) {
	return a.AuthenticateFor(ctx, token, remote, converted.ClusterAudience)
}

// AuthenticateFor does the same for an audience of the tenant.
func (a Accounts) AuthenticateFor(ctx context.Context, token, remote, audience string) (user.Info, error) {
	super, err := a.Reviewer.Review(ctx, token, remote, converted.SuperAudience(a.Namer.Key, audience))
	if super == nil || err != nil {
		return nil, err
	}
	return a.tenant(super), nil
}

// shownExtra are the extra values of a user that are the same for the tenant.
var shownExtra = []string{
	user.CredentialIDKey, serviceaccount.PodNameKey, serviceaccount.PodUIDKey, serviceaccount.NodeNameKey, serviceaccount.NodeUIDKey,
}

// tenant returns a user of the super cluster as the tenant names it; nil for one
// that is not a service account in a namespace of the tenant.
func (a Accounts) tenant(super user.Info) user.Info {
	superNamespace, name, err := serviceaccount.SplitUsername(super.GetName())
	if err != nil {
		return nil
	}
	namespace, err := a.Namer.TenantNamespace(superNamespace)
	if err != nil {
		return nil
	}
	who := &user.DefaultInfo{
		Name: serviceaccount.MakeUsername(namespace, name), UID: super.GetUID(), Groups: serviceaccount.MakeGroupNames(namespace),
	}
	for _, key := range shownExtra {
		if values, ok := super.GetExtra()[key]; ok {
			if who.Extra == nil {
				who.Extra = map[string][]string{}
			}
			who.Extra[key] = values
		}
	}
	return who
}
