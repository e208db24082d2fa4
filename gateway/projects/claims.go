package projects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/gateway/pace"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	// decideWithin is how long vc-manager may take to decide on a claim.
	decideWithin = 10 * time.Second
	// withdrawWithin bounds the deletion of a claim that was not granted.
	withdrawWithin = 5 * time.Second
	// A user creates and deletes claims a second, and a burst of them; users is
	// how many of them are remembered.
	claimsPerSecond, claimBurst = 1, 30
	users                       = 4096
	userFor                     = time.Hour
)

// Claims creates and deletes ProjectClaims for users. vc-manager creates their
// VirtualClusters: the gateway, which all clients reach, has no permission to.
type Claims struct {
	// Cached reads ProjectTemplates, ProjectClaims and VirtualClusters.
	Cached client.Reader
	// Live writes and watches ProjectClaims.
	Live client.WithWatch
	// Log gets what users are not told.
	Log logr.Logger

	pace *pace.Pace
}

// NewClaims returns the claims of a super cluster.
func NewClaims(cached client.Reader, live client.WithWatch, log logr.Logger) *Claims {
	return &Claims{Cached: cached, Live: live, Log: log, pace: pace.New(claimsPerSecond, claimBurst, users, userFor)}
}

// templateFor returns the template that a request names, or the only one from
// which the user may request. The response to one that the user may not use is
// that to one that does not exist.
func (c *Claims) templateFor(
	ctx context.Context, who user.Info, request *projectsv1alpha1.ProjectRequest,
) (*tenancyv1alpha1.ProjectTemplate, error) {
	list := &tenancyv1alpha1.ProjectTemplateList{}
	if err := c.Cached.List(ctx, list); err != nil {
		return nil, c.unavailable(err, "list ProjectTemplates")
	}
	usable := slices.DeleteFunc(list.Items, func(t tenancyv1alpha1.ProjectTemplate) bool {
		return !members.List(t.Spec.Requesters).Has(who)
	})
	wanted := request.Spec.Template
	if i := slices.IndexFunc(usable, func(t tenancyv1alpha1.ProjectTemplate) bool { return t.Name == wanted }); i >= 0 {
		return &usable[i], nil
	}
	switch {
	case wanted != "":
		return nil, forbidden(request.Name, fmt.Sprintf("there is no template %q from which you may request projects", wanted))
	case len(usable) == 0:
		return nil, forbidden(request.Name, "there is no template from which you may request projects")
	case len(usable) == 1:
		return &usable[0], nil
	}
	all := make([]string, 0, len(usable))
	for i := range usable {
		all = append(all, usable[i].Name)
	}
	slices.Sort(all)
	return nil, apierrors.NewBadRequest(
		"spec.template must name one of the templates from which you may request projects: " + strings.Join(all, ", "))
}

// hasFreeSlot reports whether a user may have another project of a template, as
// far as the cache knows. It spares the super cluster requests that cannot be
// granted; the apiserver decides.
func (c *Claims) hasFreeSlot(ctx context.Context, who user.Info, template *tenancyv1alpha1.ProjectTemplate) (bool, error) {
	for slot := range template.Spec.ProjectsPerUser {
		key := types.NamespacedName{Namespace: template.Spec.Namespace, Name: names.ProjectSlot(template.Name, who.GetName(), slot)}
		err := c.Cached.Get(ctx, key, &tenancyv1alpha1.VirtualCluster{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, c.unavailable(err, "get VirtualClusters")
		}
	}
	return false, nil
}

// isClaimed reports whether a project that was requested has a name, as far as
// the cache knows.
func (c *Claims) isClaimed(ctx context.Context, name string) (bool, error) {
	err := c.Cached.Get(ctx, types.NamespacedName{Name: name}, &tenancyv1alpha1.ProjectClaim{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.unavailable(err, "get ProjectClaims")
	}
	return true, nil
}

// create creates a claim. The apiserver decides who gets a name.
func (c *Claims) create(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim, dryRun bool) error {
	var options []client.CreateOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	err := c.Live.Create(ctx, claim, options...)
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return errTaken(claim.Name)
	case apierrors.IsInvalid(err):
		return invalid(err)
	}
	return c.unavailable(err, "create a ProjectClaim")
}

// await returns the decision of vc-manager on a claim, with the claim as it is
// then.
func (c *Claims) await(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) (*tenancyv1alpha1.ProjectClaim, *metav1.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	changes, err := c.Live.Watch(ctx, &tenancyv1alpha1.ProjectClaimList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, claim.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: claim.ResourceVersion},
	})
	if err != nil {
		return nil, nil, c.unavailable(err, "watch a ProjectClaim")
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		current, ok := event.Object.(*tenancyv1alpha1.ProjectClaim)
		if !ok || event.Type == watch.Deleted || current.UID != claim.UID {
			break
		}
		if bound := meta.FindStatusCondition(current.Status.Conditions, tenancyv1alpha1.ConditionBound); bound != nil {
			return current, bound, nil
		}
	}
	return nil, nil, apierrors.NewTimeoutError(
		"the platform has not created the project in time, and does not create it any more: try again later", 0)
}

// withdraw deletes a claim that was not granted, also when the client has gone
// away: an error leaves no project.
func (c *Claims) withdraw(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := c.Live.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		c.Log.Error(err, "Failed to delete a ProjectClaim that was not granted", "claim", claim.Name)
	}
}

// delete deletes the claim of a project, and so the project.
func (c *Claims) delete(ctx context.Context, name string, uid types.UID, dryRun bool) error {
	options := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	err := c.Live.Delete(ctx, &tenancyv1alpha1.ProjectClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}, options...)
	switch {
	case err == nil || apierrors.IsNotFound(err): // it is being deleted
		return nil
	case apierrors.IsConflict(err):
		return forbiddenToDelete(name)
	}
	return c.unavailable(err, "delete a ProjectClaim")
}

// unavailable logs an error of the super cluster, of which users learn nothing.
func (c *Claims) unavailable(err error, attempted string) error {
	if errors.Is(err, context.Canceled) {
		return apierrors.NewTimeoutError("the request was canceled", 0)
	}
	c.Log.Error(err, "Failed to serve a request for a project", "attempted", attempted)
	return apierrors.NewServiceUnavailable("the platform cannot create or delete projects now: try again later")
}

var (
	resource         = projectsv1alpha1.GroupVersion.WithResource(projectsv1alpha1.Resource).GroupResource()
	requestsResource = projectsv1alpha1.GroupVersion.WithResource(projectsv1alpha1.RequestsResource).GroupResource()
)

// errLimit says that a user has no free slot.
func errLimit(name string, template *tenancyv1alpha1.ProjectTemplate) error {
	return forbidden(name, fmt.Sprintf("you have as many projects of template %q as you may have, which is %d: "+
		"delete one, and wait until nothing of it is left", template.Name, template.Spec.ProjectsPerUser))
}

func forbidden(name, message string) error {
	return apierrors.NewForbidden(requestsResource, name, errors.New(message))
}

func forbiddenToDelete(name string) error {
	return apierrors.NewForbidden(resource, name,
		errors.New("only the user who has requested a project, and admins of the platform, delete it"))
}

// errTaken says that a name is taken, and not by whom.
func errTaken(name string) error { return apierrors.NewAlreadyExists(resource, name) }

// invalid turns the error of a claim into one of the request.
func invalid(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	about := status.Status()
	about.Message = strings.ReplaceAll(about.Message, "ProjectClaim.", requestKind+".")
	if about.Details != nil {
		about.Details.Kind = requestKind
	}
	about.Code = http.StatusUnprocessableEntity
	return &apierrors.StatusError{ErrStatus: about}
}
