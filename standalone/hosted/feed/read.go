package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// Get returns a record of a resource in a tenant; nil if there is none.
func (f *Feed) Get(ctx context.Context, tenant, resource, name string) ([]byte, error) {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", resource, name, err)
	}
	result, err := f.read(ctx, []byte(prefix+name), nil, ReadOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", resource, name, err)
	}
	if len(result.Records) == 0 {
		return nil, nil
	}
	return recordOf(result.Records[0], name).Value, nil
}

// Before returns a record as it was before a revision; nil if it did not exist,
// or if that revision is compacted.
func (f *Feed) Before(ctx context.Context, tenant, resource, name string, revision int64) ([]byte, error) {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		return nil, fmt.Errorf("get an earlier state of %s %s: %w", resource, name, err)
	}
	if revision <= 1 {
		return nil, nil
	}
	result, err := f.read(ctx, []byte(prefix+name), nil, ReadOptions{Revision: revision - 1})
	if errors.Is(err, ErrCompacted) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get an earlier state of %s %s: %w", resource, name, err)
	}
	if len(result.Records) == 0 {
		return nil, nil
	}
	return recordOf(result.Records[0], name).Value, nil
}

// Resources returns the resources of which a tenant has records. It reads one
// record of each.
func (f *Feed) Resources(ctx context.Context, tenant string) ([]string, error) {
	if _, err := keyspace.Tenant(keyspace.NewContext(ctx, tenant)); err != nil {
		return nil, fmt.Errorf("find the resources of a tenant: %w", err)
	}
	var resources []string
	begin, end := keyRange(keyspace.Prefix(tenant) + "/")
	for {
		result, err := f.read(ctx, begin, end, ReadOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("find the resources of tenant %q: %w", tenant, err)
		}
		if len(result.Records) == 0 {
			return resources, nil
		}
		key := result.Records[0].Key
		_, below, _ := keyspace.Split(key)
		resource, _, ok := keyspace.SplitRecord(below)
		if !ok { // no record of a resource
			begin = append(slices.Clone(key), 0)
			continue
		}
		resources = append(resources, string(resource))
		prefix, err := keyspace.RecordPrefix(tenant, string(resource))
		if err != nil {
			return nil, fmt.Errorf("find the resources of tenant %q: %w", tenant, err)
		}
		_, begin = keyRange(prefix)
	}
}
