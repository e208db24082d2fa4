package resources

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// RuntimeClass is shown to the tenants whose pods may have it. What it adds to pods, their overhead and the choice of nodes, is
// not: the super cluster adds that to the copies, and refuses those to which the tenant's apiserver added anything else, such
// as what the class said a moment ago.
func RuntimeClass() kinds.Flow {
	return class("RuntimeClass", &nodev1.RuntimeClass{}, &nodev1.RuntimeClassList{},
		func(to, from *nodev1.RuntimeClass) {
			to.Handler, to.Overhead, to.Scheduling = from.Handler, nil, nil
		},
		func(a, b *nodev1.RuntimeClass) bool { return a.Handler != b.Handler },
	)
}
