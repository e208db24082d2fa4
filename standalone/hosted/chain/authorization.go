package chain

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// newPolicy returns the RBAC of a tenant.
func newPolicy(factory informers.SharedInformerFactory) *rbac.RBACAuthorizer {
	objects := factory.Rbac().V1()
	return rbac.New(
		&rbac.RoleGetter{Lister: objects.Roles().Lister()},
		&rbac.RoleBindingLister{Lister: objects.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: objects.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: objects.ClusterRoleBindings().Lister()},
	)
}

// tenantAuthorizer authorizes by the RBAC of one tenant.
type tenantAuthorizer struct{ tenant *Tenant }

// authorizer returns the authorizer of the tenant. Parts of the tenant get this
// one: CEL expressions of admission policies, for example, authorize without
// the context of a request.
func (t *Tenant) authorizer() tenantAuthorizer { return tenantAuthorizer{t} }

// Authorize implements authorizer.Authorizer.
func (a tenantAuthorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, err := a.bind(ctx)
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	if slices.Contains(attributes.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil // works before RBAC has any roles
	}
	policy, err := a.tenant.policy.get()
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	return policy.Authorize(ctx, attributes)
}

// RulesFor implements authorizer.RuleResolver.
func (a tenantAuthorizer) RulesFor(
	ctx context.Context, who user.Info, namespace string,
) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	ctx, err := a.bind(ctx)
	if err != nil {
		return nil, nil, true, err
	}
	policy, err := a.tenant.policy.get()
	if err != nil {
		return nil, nil, true, err
	}
	return policy.RulesFor(ctx, who, namespace)
}

// bind returns a context of the tenant. It fails for a context of another one.
func (a tenantAuthorizer) bind(ctx context.Context) (context.Context, error) {
	ctx = keyspace.NewContext(ctx, a.tenant.spec.Name)
	_, err := keyspace.Tenant(ctx)
	return ctx, err
}

// authorizers authorize each request by the RBAC of its tenant.
type authorizers struct{ chain *Chain }

// Authorize implements authorizer.Authorizer.
func (a authorizers) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	t, err := a.chain.tenant(ctx)
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	return t.authorizer().Authorize(ctx, attributes)
}

// RulesFor implements authorizer.RuleResolver.
func (a authorizers) RulesFor(
	ctx context.Context, who user.Info, namespace string,
) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	t, err := a.chain.tenant(ctx)
	if err != nil {
		return nil, nil, true, err
	}
	return t.authorizer().RulesFor(ctx, who, namespace)
}
