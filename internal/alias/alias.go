// Package alias finds out which VirtualCluster has an alias: the oldest of those
// that name it in their spec.
package alias

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Field is the field by which VirtualClusters are selected by their alias, in an
// apiserver and in caches that are indexed by Of.
const Field = "spec.alias"

// Of returns the values of Field of a VirtualCluster.
func Of(object client.Object) []string {
	if vc, ok := object.(*tenancyv1alpha1.VirtualCluster); ok && vc.Spec.Alias != "" {
		return []string{vc.Spec.Alias}
	}
	return nil
}

// Index indexes a cache by Field.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &tenancyv1alpha1.VirtualCluster{}, Field, Of); err != nil {
		return fmt.Errorf("index VirtualClusters by alias: %w", err)
	}
	return nil
}

// List returns the VirtualClusters that name an alias in their spec.
func List(ctx context.Context, reader client.Reader, alias string) ([]tenancyv1alpha1.VirtualCluster, error) {
	list := &tenancyv1alpha1.VirtualClusterList{}
	if err := reader.List(ctx, list, client.MatchingFields{Field: alias}); err != nil {
		return nil, fmt.Errorf("list VirtualClusters with alias %s: %w", alias, err)
	}
	return list.Items, nil
}

// Holder returns the VirtualCluster that has an alias; nil for none. One that is
// being deleted has it until its finalizers are removed.
func Holder(ctx context.Context, reader client.Reader, alias string) (*tenancyv1alpha1.VirtualCluster, error) {
	all, err := List(ctx, reader, alias)
	return oldest(all), err
}

// oldest returns the VirtualCluster that was created first. The UID decides
// between those of one second: the same way for all who ask, and by no name that
// a user chooses.
func oldest(all []tenancyv1alpha1.VirtualCluster) *tenancyv1alpha1.VirtualCluster {
	var first *tenancyv1alpha1.VirtualCluster
	for i := range all {
		if first == nil || IsOlder(&all[i], first) {
			first = &all[i]
		}
	}
	return first
}

// IsOlder reports whether the one of two VirtualClusters with an alias has it
// before the other.
func IsOlder(a, b *tenancyv1alpha1.VirtualCluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
