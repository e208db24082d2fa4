package projects

import (
	"cmp"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const requestKind = "ProjectRequest"

// requests creates projects for the user in the context.
type requests struct {
	directory *Directory
	claims    *Claims
}

var _ rest.Creater = requests{} //nolint:misspell // the name in the library

// New returns an empty request.
func (requests) New() runtime.Object { return &projectsv1alpha1.ProjectRequest{} }

// Create creates a project. Of the request, the name and the template are used:
// the template says all else.
func (r requests) Create(
	ctx context.Context, object runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := object.(*projectsv1alpha1.ProjectRequest)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the object is no ProjectRequest"))
	}
	template, claim, err := r.check(ctx, request)
	if err != nil {
		return nil, err
	}
	dryRun := len(options.DryRun) > 0
	if err := r.claims.create(ctx, claim, dryRun); err != nil {
		return nil, err
	}
	response := &projectsv1alpha1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}
	response.Spec.Template = claim.Spec.Template
	if !dryRun {
		response.Status.ClusterKey, err = r.settle(ctx, template, claim)
	}
	return response, err
}

// check returns the template and the claim of a request, unless it is known that
// it cannot be granted. A user without a free slot learns nothing of names.
func (r requests) check(
	ctx context.Context, request *projectsv1alpha1.ProjectRequest,
) (*tenancyv1alpha1.ProjectTemplate, *tenancyv1alpha1.ProjectClaim, error) {
	who, err := userOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	template, err := r.claims.templateFor(ctx, who, request)
	if err != nil {
		return nil, nil, err
	}
	if !r.claims.pace.Allows(who.GetName()) {
		return nil, nil, errTooMany()
	}
	if free, err := r.claims.hasFreeSlot(ctx, who, template); err != nil || !free {
		return nil, nil, cmp.Or(err, errLimit(request.Name, template))
	}
	claimed, err := r.claims.isClaimed(ctx, request.Name)
	if err != nil {
		return nil, nil, err
	}
	if claimed || r.directory.hasAlias(request.Name) {
		return nil, nil, errTaken(request.Name)
	}
	return template, &tenancyv1alpha1.ProjectClaim{
		ObjectMeta: metav1.ObjectMeta{Name: request.Name},
		Spec:       tenancyv1alpha1.ProjectClaimSpec{Template: template.Name, Requester: who.GetName()},
	}, nil
}

// settle waits for the decision on a claim, and returns the cluster key of the
// project. A claim that is not granted is deleted.
func (r requests) settle(
	ctx context.Context, template *tenancyv1alpha1.ProjectTemplate, claim *tenancyv1alpha1.ProjectClaim,
) (string, error) {
	decided, bound, err := r.claims.await(ctx, claim)
	if err == nil && bound.Status == metav1.ConditionTrue && decided.Status.VirtualCluster != nil {
		of := decided.Status.VirtualCluster
		return names.ClusterKey(of.Namespace, of.Name, of.UID), nil
	}
	r.claims.withdraw(ctx, claim)
	switch {
	case err != nil:
		return "", err
	case bound.Reason == tenancyv1alpha1.ReasonAliasTaken:
		return "", errTaken(claim.Name)
	case bound.Reason == tenancyv1alpha1.ReasonLimitReached:
		return "", errLimit(claim.Name, template)
	}
	return "", forbidden(claim.Name, bound.Message)
}

func errTooMany() error {
	return apierrors.NewTooManyRequests("you request or delete projects too often: wait a moment", 1)
}

// deleter deletes the projects that the user in the context has requested.
type deleter struct {
	directory *Directory
	claims    *Claims
}

var _ rest.GracefulDeleter = deleter{}

// Delete implements rest.GracefulDeleter. A project of which the user is no
// member is like one that does not exist.
func (d deleter) Delete(
	ctx context.Context, name string, _ rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	who, err := userOf(ctx)
	if err != nil {
		return nil, false, err
	}
	found, err := d.directory.find(who, name)
	if err != nil {
		return nil, false, err
	}
	if found.claim == "" || found.requester != who.GetName() {
		return nil, false, forbiddenToDelete(name)
	}
	if !meets(found.object, options.Preconditions) {
		return nil, false, apierrors.NewConflict(resource, name, errors.New("it is not the project that the preconditions name"))
	}
	if !d.claims.pace.Allows(who.GetName()) {
		return nil, false, errTooMany()
	}
	// The claim has the alias of the project, also if an older VirtualCluster has it.
	if err := d.claims.delete(ctx, found.alias, found.claim, len(options.DryRun) > 0); err != nil {
		return nil, false, err
	}
	return found.object.DeepCopy(), false, nil
}

func meets(object metav1.Object, preconditions *metav1.Preconditions) bool {
	return preconditions == nil ||
		(preconditions.UID == nil || *preconditions.UID == object.GetUID()) &&
			(preconditions.ResourceVersion == nil || *preconditions.ResourceVersion == object.GetResourceVersion())
}
