package projectclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/alias"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// rejection is why a claim gets no VirtualCluster. The message is for the user
// who requests.
type rejection struct{ reason, message string }

// place returns the VirtualCluster of a claim, which it creates in the first
// slot that is free, or why there is none.
func (r *Reconciler) place(
	ctx context.Context, claim *tenancyv1alpha1.ProjectClaim,
) (*tenancyv1alpha1.VirtualCluster, *rejection, error) {
	own, taken, err := r.virtualClusters(ctx, claim)
	switch {
	case err != nil:
		return nil, nil, err
	case len(own) > 0: // of a reconcile that could not write the status
		return &own[0], nil, nil
	case taken:
		return nil, &rejection{tenancyv1alpha1.ReasonAliasTaken, "the name is taken: choose another one"}, nil
	}
	template := &tenancyv1alpha1.ProjectTemplate{}
	err = r.Client.Get(ctx, types.NamespacedName{Name: claim.Spec.Template}, template)
	if apierrors.IsNotFound(err) {
		return nil, &rejection{tenancyv1alpha1.ReasonTemplateNotFound, "the template does not exist any more"}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get ProjectTemplate %s: %w", claim.Spec.Template, err)
	}
	vc, err := render(template, claim)
	if err != nil {
		return nil, r.rejectByTemplate(template, tenancyv1alpha1.ReasonTemplateInvalid, err), nil
	}
	return r.create(ctx, template, claim, vc)
}

// virtualClusters returns the VirtualClusters of a claim, and whether one of
// others has the name of its project.
func (r *Reconciler) virtualClusters(
	ctx context.Context, claim *tenancyv1alpha1.ProjectClaim,
) (own []tenancyv1alpha1.VirtualCluster, taken bool, err error) {
	all, err := alias.List(ctx, r.Live, claim.Name)
	if err != nil {
		return nil, false, err
	}
	own = slices.DeleteFunc(slices.Clone(all), func(vc tenancyv1alpha1.VirtualCluster) bool {
		return vc.Annotations[names.ProjectClaim] != string(claim.UID)
	})
	return own, len(own) < len(all), nil
}

// create creates a VirtualCluster in the first slot that is free: the apiserver
// decides which one of several claims has it.
func (r *Reconciler) create(
	ctx context.Context, template *tenancyv1alpha1.ProjectTemplate, claim *tenancyv1alpha1.ProjectClaim, vc *tenancyv1alpha1.VirtualCluster,
) (*tenancyv1alpha1.VirtualCluster, *rejection, error) {
	for slot := range template.Spec.ProjectsPerUser {
		created := vc.DeepCopy()
		created.Name = names.ProjectSlot(template.Name, claim.Spec.Requester, slot)
		err := r.Client.Create(ctx, created, fieldOwner)
		switch {
		case err == nil:
			return created, nil, nil
		case apierrors.IsAlreadyExists(err):
			continue
		case apierrors.IsForbidden(err):
			return nil, r.rejectByTemplate(template, tenancyv1alpha1.ReasonNotPermitted, err), nil
		case apierrors.IsInvalid(err) || apierrors.IsNotFound(err): // without the namespace, it is the latter
			return nil, r.rejectByTemplate(template, tenancyv1alpha1.ReasonTemplateInvalid, err), nil
		default:
			return nil, nil, err
		}
	}
	return nil, &rejection{tenancyv1alpha1.ReasonLimitReached, "the user has as many projects as the template permits"}, nil
}

// rejectByTemplate records what an admin has to correct, and returns the
// message for the user: without details of the super cluster.
func (r *Reconciler) rejectByTemplate(template *tenancyv1alpha1.ProjectTemplate, reason string, err error) *rejection {
	r.Events.Eventf(template, nil, corev1.EventTypeWarning, reason, "CreateProject", "Cannot create a VirtualCluster: %s", err.Error())
	if reason == tenancyv1alpha1.ReasonNotPermitted {
		return &rejection{reason, fmt.Sprintf(
			"the platform permits no more projects of template %q now: ask its admin, who finds the reason in the events of the ProjectTemplate",
			template.Name)}
	}
	return &rejection{reason, fmt.Sprintf(
		"the template %q makes no valid project: ask the admin of the platform, who finds the reason in the events of the ProjectTemplate",
		template.Name)}
}

// render returns the VirtualCluster of a claim, without a name. The alias
// and the annotations of the project replace those of the template.
func render(template *tenancyv1alpha1.ProjectTemplate, claim *tenancyv1alpha1.ProjectClaim) (*tenancyv1alpha1.VirtualCluster, error) {
	from := template.Spec.Template
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: template.Spec.Namespace,
		Labels:    with(from.Metadata.Labels, map[string]string{names.ProjectTemplate: template.Name}),
		Annotations: with(from.Metadata.Annotations, map[string]string{
			names.ProjectClaim: string(claim.UID), names.Requester: claim.Spec.Requester, names.RequesterRole: template.Spec.RequesterClusterRole,
		}),
	}}
	if len(from.Spec.Raw) > 0 {
		wrong, err := json.UnmarshalStrict(from.Spec.Raw, &vc.Spec)
		if err := errors.Join(append(wrong, err)...); err != nil {
			return nil, fmt.Errorf("read spec.template.spec: %w", err)
		}
	}
	vc.Spec.Alias = claim.Name
	requester := tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: claim.Spec.Requester}
	if !slices.Contains(vc.Spec.Members, requester) {
		vc.Spec.Members = append(vc.Spec.Members, requester)
	}
	return vc, nil
}

// with returns a map with what two have; the second one wins.
func with(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
