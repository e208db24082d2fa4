package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// ObjectKey is an object's kind and key on the side that it was written to.
type ObjectKey struct {
	Kind string
	Key  client.ObjectKey
}
