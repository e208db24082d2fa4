package custom

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// checkRights rejects a custom resource that the syncer has no right to sync.
// The rights for custom resources are not among those of the syncer's own
// ClusterRole.
func (c *Resources) checkRights(ctx context.Context, r kinds.CustomResource, resource string) error {
	missing, err := c.missingRights(ctx, r, resource, c.kind(r).Verbs())
	if len(missing) == 0 || err != nil {
		return err
	}
	return fmt.Errorf("in the super cluster the syncer lacks the rights to %s; "+
		"give it a ClusterRole that has them (see docs/admins/custom-resources.md)",
		strings.Join(missing, ", "))
}

// missingRights returns the verbs that the syncer may not use for a custom
// resource.
func (c *Resources) missingRights(ctx context.Context, r kinds.CustomResource, resource string, verbs []string) ([]string, error) {
	var missing []string
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: r.GVK.Group, Resource: resource},
		}}
		if err := c.super.GetClient().Create(ctx, review); err != nil {
			return nil, fmt.Errorf("ask the super cluster for the syncer's rights: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}
