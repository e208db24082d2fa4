package keyspace_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

func TestSplitRecord(t *testing.T) {
	for key, want := range map[string][2]string{
		"/pods/team/web":                 {"pods", "team/web"},
		"/namespaces/team":               {"namespaces", "team"},
		"/services/specs/team/web":       {"services/specs", "team/web"},
		"/services/endpoints/team/web":   {"services/endpoints", "team/web"},
		"/example.com/widgets/team/web":  {"example.com/widgets", "team/web"},
		"/example.com/widgets/cluster":   {"example.com/widgets", "cluster"},
		"/apiextensions.k8s.io/crds/a.b": {"apiextensions.k8s.io/crds", "a.b"},
		"/namespaces/a.b":                {"namespaces", "a.b"},
		"/pods/a.b/c.d":                  {"pods", "a.b/c.d"},
		"/ranges/serviceips":             {"ranges", "serviceips"},
		"/compact_rev_key":               {},
		"/pods/":                         {},
		"/pods":                          {},
		"//pods/team/web":                {},
		"/services/specs/":               {},
		"/services/specs":                {},
		"/services//web":                 {},
		"/example.com/widgets":           {},
		"/":                              {},
		"":                               {},
		"pods/team/web":                  {},
	} {
		t.Run(key, func(t *testing.T) {
			g := NewWithT(t)
			resource, name, ok := keyspace.SplitRecord([]byte(key))
			g.Expect(ok).To(Equal(want[0] != ""))
			if ok {
				g.Expect([2]string{string(resource), string(name)}).To(Equal(want))
			}
		})
	}
}

// TestRecordPrefix: a prefix contains the records of one resource of one
// tenant, and nothing else.
func TestRecordPrefix(t *testing.T) {
	for name, test := range map[string]struct{ tenant, resource, want string }{
		"a resource":              {"red", "pods", "/controlplanes/red/pods/"},
		"Services":                {"red", "services/specs", "/controlplanes/red/services/specs/"},
		"a custom resource":       {"red", "example.com/widgets", "/controlplanes/red/example.com/widgets/"},
		"no tenant":               {"", "pods", ""},
		"a path to another":       {"red/pods", "blue", ""},
		"no resource":             {"red", "", ""},
		"Services and Endpoints":  {"red", "services", ""},
		"a group":                 {"red", "example.com", ""},
		"a namespace of it":       {"red", "pods/team", ""},
		"a namespace of a custom": {"red", "example.com/widgets/team", ""},
		"a slash":                 {"red", "/pods", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			prefix, err := keyspace.RecordPrefix(test.tenant, test.resource)
			g.Expect(prefix).To(Equal(test.want))
			g.Expect(err != nil).To(Equal(test.want == ""))
		})
	}
}
