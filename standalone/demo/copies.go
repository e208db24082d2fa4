package demo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// copiedRows are the objects of the shop that are no pods, found on both sides.
func (s *stage) copiedRows(ctx context.Context, tenant *Tenant) ([]row, error) {
	kinds := []struct {
		name   string
		object client.Object
	}{
		{"service", &corev1.Service{}},
		{"configmap", &corev1.ConfigMap{}},
		{"secret", &corev1.Secret{}},
	}
	namespace := names.SuperNamespace(tenant.Namespace, shop)
	rows := make([]row, 0, len(kinds))
	for _, kind := range kinds {
		if err := s.awaitCopy(ctx, types.NamespacedName{Namespace: namespace, Name: web}, kind.object); err != nil {
			return nil, fmt.Errorf("the %s %s/%s of %s: %w", kind.name, shop, web, tenant.Name, err)
		}
		rows = append(rows, row{
			tenant: tenant.Name, object: fmt.Sprintf("%s %s/%s", kind.name, shop, web), super: namespace + "/" + kind.object.GetName(),
		})
	}
	return rows, nil
}

func (s *stage) awaitCopy(ctx context.Context, key types.NamespacedName, object client.Object) error {
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		err := s.admin.client.Get(ctx, key, object)
		return err == nil, client.IgnoreNotFound(err)
	})
}
