package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// target is a namespace in which pods are created.
type target struct {
	client    client.WithWatch
	namespace string
}

// place is the destination of a load: tenants, or the super cluster directly,
// with a namespace for each tenant.
type place struct {
	name    string
	targets []target
	direct  bool
}

// ofTenants returns the namespaces default of tenants.
func ofTenants(tenants []*local.Tenant) place {
	p := place{name: "tenants"}
	for _, t := range tenants {
		p.targets = append(p.targets, target{t.Client, metav1.NamespaceDefault})
	}
	return p
}

// directly creates n namespaces in the super cluster.
func (w *world) directly(ctx context.Context, n int) (place, error) {
	p := place{name: "directly", direct: true}
	for i := range n {
		name := fmt.Sprintf("%s-direct-%03d", mine, i)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{madeBy: mine}}}
		if err := w.super.Client.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return p, fmt.Errorf("create the namespace %s in the super cluster: %w", name, err)
		}
		p.targets = append(p.targets, target{w.super.Client, name})
	}
	for _, t := range p.targets {
		key := client.ObjectKey{Namespace: t.namespace, Name: "default"}
		if err := awaitObject(ctx, t.client, key, &corev1.ServiceAccount{}); err != nil {
			return p, err
		}
	}
	return p, nil
}

// running and removed return the moments at which the creator of a pod sees
// that it runs, and that it is gone.
func (p place) running() moment {
	if p.direct {
		return ran
	}
	return shown
}

func (p place) removed() moment {
	if p.direct {
		return superGone
	}
	return gone
}

// all returns the indexes of a list.
func all[T any](of []T) []int {
	numbers := make([]int, len(of))
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}
