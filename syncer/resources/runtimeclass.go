package resources

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// RuntimeClass is synced up to the tenants whose pods may use it, without the
// overhead and the scheduling constraints that it adds to pods: the super
// cluster adds them to the copies, and rejects copies to which the tenant's
// apiserver added others, such as those of an earlier state of the class.
func RuntimeClass() kinds.Flow {
	return class("RuntimeClass", &nodev1.RuntimeClass{}, &nodev1.RuntimeClassList{},
		func(to, from *nodev1.RuntimeClass) {
			to.Handler, to.Overhead, to.Scheduling = from.Handler, nil, nil
		},
		func(a, b *nodev1.RuntimeClass) bool { return a.Handler != b.Handler },
	)
}
