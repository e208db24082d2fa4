package chain

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
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

// authorizers authorize each request by the RBAC of its tenant.
type authorizers struct{ chain *Chain }

// Authorize implements authorizer.Authorizer.
func (a authorizers) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	t, err := a.chain.tenant(ctx)
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	if slices.Contains(attributes.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil // works before RBAC has any roles
	}
	policy, err := t.policy.get()
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	return policy.Authorize(ctx, attributes)
}

// RulesFor implements authorizer.RuleResolver.
func (a authorizers) RulesFor(
	ctx context.Context, who user.Info, namespace string,
) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	t, err := a.chain.tenant(ctx)
	if err != nil {
		return nil, nil, true, err
	}
	policy, err := t.policy.get()
	if err != nil {
		return nil, nil, true, err
	}
	return policy.RulesFor(ctx, who, namespace)
}
