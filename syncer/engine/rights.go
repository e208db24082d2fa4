package engine

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// checkRights asks the super cluster whether the syncer has the rights that carrying the custom resource takes, which are
// not among those of [Rules].
func (c *carriage) checkRights(ctx context.Context, r kinds.CustomResource) error {
	var missing []string
	for _, verb := range c.engine.custom.kind(r).Verbs() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: r.GVK.Group, Resource: c.of.Resource},
		}}
		if err := c.API.GetClient().Create(ctx, review); err != nil {
			return fmt.Errorf("asking the super cluster for the syncer's rights: %w", err)
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
