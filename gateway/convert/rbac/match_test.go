package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func resource(verb, group, name, subresource, object string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Verb: verb, APIGroup: group, Resource: name, Subresource: subresource, Name: object, ResourceRequest: true}
}

func TestAllows(t *testing.T) {
	rule := func(verbs, groups, resources, names []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
	}
	urls := func(urls ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
	}
	path := func(path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: "get", Path: path}
	}
	all, core, get := []string{"*"}, []string{""}, []string{"get"}
	for name, tt := range map[string]struct {
		rule rbacv1.PolicyRule
		asks authorizer.AttributesRecord
		want bool
	}{
		"everything":                          {rule(all, all, all, nil), resource("get", "apps", "deployments", "scale", "a"), true},
		"a verb":                              {rule(get, core, []string{"pods"}, nil), resource("get", "", "pods", "", "a"), true},
		"another verb":                        {rule(get, core, []string{"pods"}, nil), resource("list", "", "pods", "", ""), false},
		"another group":                       {rule(get, core, []string{"pods"}, nil), resource("get", "apps", "pods", "", ""), false},
		"a subresource by its resource":       {rule(get, core, []string{"pods"}, nil), resource("get", "", "pods", "log", ""), false},
		"a subresource":                       {rule(get, core, []string{"pods/log"}, nil), resource("get", "", "pods", "log", ""), true},
		"a resource by its subresource":       {rule(get, core, []string{"pods/log"}, nil), resource("get", "", "pods", "", ""), false},
		"subresources of all":                 {rule(get, core, []string{"*/scale"}, nil), resource("get", "", "a", "scale", ""), true},
		"another subresource of all":          {rule(get, core, []string{"*/scale"}, nil), resource("get", "", "a", "rescale", ""), false},
		"subresources of all, of none":        {rule(get, core, []string{"*/"}, nil), resource("get", "", "a", "", ""), false},
		"all subresources of a resource":      {rule(get, core, []string{"pods/*"}, nil), resource("get", "", "pods", "log", ""), false},
		"a name":                              {rule(get, core, []string{"pods"}, []string{"a"}), resource("get", "", "pods", "", "a"), true},
		"another name":                        {rule(get, core, []string{"pods"}, []string{"a"}), resource("get", "", "pods", "", "b"), false},
		"no name":                             {rule(get, core, []string{"pods"}, []string{"a"}), resource("get", "", "pods", "", ""), false},
		"a star as a name":                    {rule(get, core, []string{"pods"}, []string{"*"}), resource("get", "", "pods", "", "a"), false},
		"nothing":                             {rule(get, nil, nil, nil), resource("get", "", "pods", "", "a"), false},
		"a path":                              {urls("/healthz"), path("/healthz"), true},
		"a path below":                        {urls("/healthz"), path("/healthz/a"), false},
		"paths below":                         {urls("/healthz/*"), path("/healthz/a"), true},
		"paths below, itself":                 {urls("/healthz/*"), path("/healthz"), false},
		"all paths":                           {urls("*"), path("/metrics"), true},
		"paths that end in many stars":        {urls("/a**"), path("/a/b"), true},
		"a path by a permission to all kinds": {rule(all, all, all, nil), path("/metrics"), false},
		"a kind by a permission to all paths": {urls("*"), resource("get", "", "pods", "", ""), false},
	} {
		if got := allows(&tt.rule, tt.asks); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
