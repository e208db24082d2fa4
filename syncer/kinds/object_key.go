package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// ObjectKey identifies an object on one side by its kind and key.
type ObjectKey struct {
	Kind string
	Key  client.ObjectKey
}
