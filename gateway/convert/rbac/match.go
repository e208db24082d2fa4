package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allows reports whether a rule permits a request, as in the RBAC authorizer of
// an apiserver.
func allows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !has(rule.Verbs, a.GetVerb(), rbacv1.VerbAll) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return matchesURL(url, a.GetPath()) })
	}
	named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName())
	return named && has(rule.APIGroups, a.GetAPIGroup(), rbacv1.APIGroupAll) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool { return matchesResource(resource, a) })
}

func has(values []string, value, all string) bool {
	return slices.Contains(values, all) || slices.Contains(values, value)
}

// matchesResource reports whether a resource of a rule, such as pods, pods/log or
// */scale, is that of a request.
func matchesResource(resource string, a authorizer.Attributes) bool {
	asked, subresource := a.GetResource(), a.GetSubresource()
	if subresource == "" {
		return resource == rbacv1.ResourceAll || resource == asked
	}
	return resource == rbacv1.ResourceAll || resource == asked+"/"+subresource || resource == "*/"+subresource
}

func matchesURL(url, path string) bool {
	prefix, isPrefix := strings.CutSuffix(url, "*")
	return url == path || isPrefix && strings.HasPrefix(path, strings.TrimRight(prefix, "*"))
}
