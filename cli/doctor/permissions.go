package doctor

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// right is something that a user may do in all namespaces.
type right struct{ verb, group, resource string }

// String returns a right as messages name it.
func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

// rightsToInstall returns what the user needs who installs the chart: the
// programs get rights by roles that the user may not have.
func rightsToInstall() []right {
	const rbacGroup = "rbac.authorization.k8s.io"
	kinds, verbs := installation.Kinds(), []string{"get", "create", "patch"}
	rights := make([]right, 0, len(verbs)*len(kinds)+6)
	// Helm keeps its releases in Secrets.
	rights = append(rights, right{"create", "", "secrets"}, right{"list", "", "secrets"})
	for _, kind := range kinds {
		for _, verb := range verbs {
			rights = append(rights, right{verb, kind.Group, kind.Resource})
		}
	}
	for _, resource := range []string{"clusterroles", "roles"} {
		rights = append(rights, right{"escalate", rbacGroup, resource}, right{"bind", rbacGroup, resource})
	}
	return rights
}

// permissions checks whether the user may install the chart.
func permissions(ctx context.Context, s *Super) Result {
	missing, err := s.missing(ctx, []right{{"*", "*", "*"}})
	if err == nil && len(missing) > 0 {
		missing, err = s.missing(ctx, rightsToInstall())
	}
	if err != nil {
		return unread(err)
	}
	return permissionsVerdict(missing)
}

// permissionsVerdict judges by the rights that a user lacks.
func permissionsVerdict(missing []right) Result {
	if len(missing) == 0 {
		return ok("you may install, upgrade and uninstall VirtualCluster")
	}
	names := make([]string, 0, len(missing))
	for _, r := range missing {
		names = append(names, r.String())
	}
	return failed("Install with an account that has the permissions of cluster-admin", "you may not %s", enumerate(names))
}

// missing returns the rights that the user does not have.
func (s *Super) missing(ctx context.Context, rights []right) ([]right, error) {
	denied := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i, r := range rights {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource},
			}}
			if err := s.Client.Create(ctx, review); err != nil {
				return fmt.Errorf("review your permissions: %w", err)
			}
			denied[i] = !review.Status.Allowed
			return nil
		})
	}
	err := group.Wait()
	var missing []right
	for i, r := range rights {
		if denied[i] {
			missing = append(missing, r)
		}
	}
	return missing, err
}

// enumerated is how many names of a list a message has.
const enumerated = 5

// enumerate joins names for a message, the first of many.
func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), len(names)-enumerated)
}
