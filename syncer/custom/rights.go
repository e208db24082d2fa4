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
	var missing []string
	for _, verb := range c.kind(r).Verbs() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: r.GVK.Group, Resource: resource},
		}}
		if err := c.super.GetClient().Create(ctx, review); err != nil {
			return fmt.Errorf("ask the super cluster for the syncer's rights: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("in the super cluster the syncer lacks the rights to %s; "+
		"give it a ClusterRole that has them (see docs/admins/custom-resources.md)",
		strings.Join(missing, ", "))
}
