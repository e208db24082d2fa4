package chain

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// TestActionOn has the table of upstream's checkAPIService: for each APIService
// that is stored, the actions if it is not desired, desired at a start, and
// desired always.
func TestActionOn(t *testing.T) {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	of := func(managed string, priority int32) *apiregistrationv1.APIService {
		return localAPIService(version, priority, 1, managed)
	}
	desired := []*apiregistrationv1.APIService{nil, of(automanagedOnStart, 2), of(automanaged, 2)}
	none, create, update, remove := actionNone, actionCreate, actionUpdate, actionDelete
	for name, test := range map[string]struct {
		current             *apiregistrationv1.APIService
		atStart, afterwards []action
	}{
		"missing":                 {nil, []action{none, create, create}, []action{none, none, create}},
		"of a user":               {of("", 1), []action{none, none, none}, []action{none, none, none}},
		"of another value":        {of("never", 1), []action{none, none, none}, []action{none, none, none}},
		"of a start, different":   {of(automanagedOnStart, 1), []action{remove, update, update}, []action{none, none, none}},
		"of a start, equal":       {of(automanagedOnStart, 2), []action{remove, none, none}, []action{none, none, none}},
		"always there, different": {of(automanaged, 1), []action{remove, update, update}, []action{remove, none, update}},
		"always there, equal":     {of(automanaged, 2), []action{remove, none, none}, []action{remove, none, none}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for i, each := range desired {
				column := fmt.Sprintf("column %c", 'A'+i)
				g.Expect(actionOn(test.current, each, true)).To(Equal(test.atStart[i]), "%s, at a start", column)
				g.Expect(actionOn(test.current, each, false)).To(Equal(test.afterwards[i]), "%s, afterwards", column)
			}
		})
	}
}

// TestLocalAPIServicesByName: versions that are not served have none, nor has a
// built-in version that upstream does not register.
func TestLocalAPIServicesByName(t *testing.T) {
	g := NewWithT(t)
	object := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true}, {Name: "v2", Served: true}, {Name: "v0"},
		},
	}}
	other := object.DeepCopy()
	other.Spec.Versions = other.Spec.Versions[:1]
	found := customServices([]*apiextensionsv1.CustomResourceDefinition{object, other})
	g.Expect(found).To(And(HaveLen(2), HaveKey("v1.example.com"), HaveKey("v2.example.com")))

	found = builtInServices(map[string]map[string]bool{
		"apps": {"v1": true, "v9": true}, "apiregistration.k8s.io": {"v1": true}, "batch": {},
	})
	g.Expect(found).To(And(HaveLen(2), HaveKey("v1."), HaveKey("v1.apps")))
}
