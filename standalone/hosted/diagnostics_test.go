package hosted

import (
	"testing"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestIsOwn(t *testing.T) {
	path := func(p string) apirequest.RequestInfo { return apirequest.RequestInfo{Path: p} }
	resource := func(group, resource string) apirequest.RequestInfo {
		return apirequest.RequestInfo{IsResourceRequest: true, APIGroup: group, Resource: resource}
	}
	for name, test := range map[string]struct {
		info apirequest.RequestInfo
		want bool
	}{
		"index":                       {path("/"), true},
		"discovery":                   {path("/apis"), true},
		"OpenAPI":                     {path("/openapi/v3"), true},
		"health":                      {path("/readyz"), true},
		"one check":                   {path("/readyz/ping"), true},
		"keys of tokens":              {path("/openid/v1/jwks"), true},
		"metrics":                     {path("/metrics"), false},
		"metrics of objectives":       {path("/metrics/slis"), false},
		"profiles":                    {path("/debug/pprof/heap"), false},
		"flags":                       {path("/flagz"), false},
		"status":                      {path("/statusz"), false},
		"logs":                        {path("/logs/"), false},
		"configuration":               {path("/configz"), false},
		"nothing":                     {path(""), false},
		"begins like an own one":      {path("/healthzz"), false},
		"a resource":                  {resource("", "pods"), true},
		"state of components":         {resource("", "componentstatuses"), false},
		"another group's of its name": {resource("example.com", "componentstatuses"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOwn(&test.info); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
