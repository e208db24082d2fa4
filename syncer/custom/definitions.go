package custom

import (
	"context"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions are those of the super cluster. They are shared by all tenants,
// so each is read only once in a while.
type definitions struct {
	mu    sync.Mutex
	known map[string]definition
}

// definition is a definition of the super cluster, and when it was read.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	at time.Time
}

// get returns the definition of a name, which was read maxAge ago at most. It
// is shared, so no caller may change it.
func (d *definitions) get(
	ctx context.Context, from client.Reader, name string, maxAge time.Duration,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known[name]; ok && time.Since(known.at) <= maxAge {
		return known.CustomResourceDefinition, nil
	}
	found := definition{&apiextensionsv1.CustomResourceDefinition{}, time.Now()}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, found.CustomResourceDefinition); err != nil {
		return nil, err
	}
	if d.known == nil {
		d.known = map[string]definition{}
	}
	d.known[name] = found
	return found.CustomResourceDefinition, nil
}
