package custom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// standing are the kinds of the standing resources that are watched, by the
// names of their definitions.
type standing struct {
	mu      sync.Mutex
	watched map[string]*kinds.Kind
}

// Stand watches the standing resources that the super cluster has and that the
// syncer may read, for as long as the syncer runs, in the versions that are
// served now. The returned checkers are done when all objects of the new ones
// are known.
func (c *Resources) Stand(ctx context.Context) ([]toolscache.DoneChecker, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var known []toolscache.DoneChecker
	var errs []error
	for _, of := range c.opts.Standing {
		if c.opts.Lacks(ctx, of.Definition) {
			continue
		}
		synced, err := c.stand(ctx, of)
		if err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", of.Definition, err))
		}
		if synced != nil {
			known = append(known, synced)
		}
	}
	return known, errors.Join(errs...)
}

// standFirst watches a resource of which a tenant is about to have copies, if
// it is a standing one.
func (c *Resources) standFirst(ctx context.Context, definition string) error {
	for _, of := range c.opts.Standing {
		if of.Definition == definition {
			_, err := c.stand(ctx, of)
			return err
		}
	}
	return nil
}

// stand watches one standing resource unless it is watched in this version. The
// checker is nil if it is, or if that is not possible yet.
func (c *Resources) stand(ctx context.Context, of kinds.StandingResource) (toolscache.DoneChecker, error) {
	c.standing.mu.Lock()
	defer c.standing.mu.Unlock()
	k, err := c.readable(ctx, of)
	if k == nil || err != nil {
		return nil, err
	}
	synced, err := c.watcher.WatchStanding(ctx, k)
	if err != nil {
		return nil, errors.Join(err, c.watcher.UnwatchStanding(ctx, k))
	}
	c.opts.Stands(k)
	was := c.standing.watched[of.Definition]
	c.standing.watched[of.Definition] = k
	if was != nil {
		err = c.watcher.UnwatchStanding(ctx, was)
	}
	return synced, err
}

// readable returns the kind of a standing resource; nil if it is watched, or if
// the super cluster does not serve it or the syncer may not read it.
func (c *Resources) readable(ctx context.Context, of kinds.StandingResource) (*kinds.Kind, error) {
	definition, err := c.definition(ctx, of.Definition)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	version, resource := readVersion(definition), definition.Spec.Names.Plural
	if version == "" || !established(definition) {
		return nil, nil
	}
	r, err := customResource(definition, tenancyv1alpha1.CustomResourceSync{
		Group: definition.Spec.Group, Version: version, Resource: resource, Direction: of.Direction,
	})
	if err != nil {
		return nil, err
	}
	if was := c.standing.watched[of.Definition]; was != nil && was.GVK == r.GVK {
		return nil, nil
	}
	missing, err := c.missingRights(ctx, r, resource, []string{"list", "watch"})
	if len(missing) > 0 || err != nil {
		return nil, err
	}
	k := c.kind(r)
	k.Source = kinds.Standing
	return k, nil
}

// readVersion returns the version in which all objects are read: the stored one
// if it is served, since that needs no conversion; empty if none is served.
func readVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	versions := slices.DeleteFunc(slices.Clone(definition.Spec.Versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Served
	})
	stored := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if len(versions) == 0 {
		return ""
	}
	return versions[max(stored, 0)].Name
}
