package pending

import "sigs.k8s.io/controller-runtime/pkg/client"

// Denials are the objects of a tenant that validators reject for now, each with what the tenant was told about it. The patrol retries
// them, and the validators do when something has changed.
type Denials struct{ *Set[string] }

// NewDenials makes the denials of a tenant. It calls count when objects of a kind become denied, or are no more.
func NewDenials(count func(kind string, by int)) *Denials { return &Denials{newSet[string](count)} }

// Put notes that an object is denied, and returns what the tenant was told about it.
func (d *Denials) Put(kind string, key client.ObjectKey) (told string) {
	return d.put(kind, key, func(told string) string { return told })
}
