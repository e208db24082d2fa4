package converted_test

import (
	"testing"

	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestRead(t *testing.T) {
	objects, err := converted.Read()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, object := range objects {
		found[object.GetName()]++
	}
	for name, want := range map[string]int{ // a policy has a binding
		names.ConvertedRole: 1, names.ConvertedPolicy: 2, names.ConvertedNamespacePolicy: 2, names.ConvertedClientPolicy: 2,
		names.ConvertedTrafficPolicy: 4, // one changes policies, and one rejects them
	} {
		if found[name] != want {
			t.Errorf("%d objects are called %s, want %d", found[name], name, want)
		}
	}
}
