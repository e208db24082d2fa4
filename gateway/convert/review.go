package convert

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
)

// review answers a question about a user of the tenant.
func (c *call) review(w http.ResponseWriter, r *http.Request) error {
	if c.info.Verb != verbCreate || c.name != "" {
		return apierrors.NewMethodNotSupported(c.kind.GroupResource(), c.info.Verb)
	}
	if form := formOf(r.Header); form.as != "" {
		return errNoForm
	}
	mediaType, data, err := readBody(w, r)
	if err != nil {
		return err
	}
	object, err := c.parse(mediaType, data)
	if err != nil {
		return err
	}
	version := c.info.APIGroup + "/" + c.info.APIVersion
	if !isOneOf(object["apiVersion"], nil, version) || !isOneOf(object["kind"], nil, c.kind.Kind) {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is no %s of %s", c.kind.Kind, version))
	}
	who, _ := request.UserFrom(r.Context())
	if c.kind.Group == authenticationv1.GroupName && c.info.Resource == "tokenreviews" {
		return c.reviewToken(w, r, object)
	}
	answered, err := c.answerReview(r.Context(), who, object)
	if err != nil {
		return err
	}
	answered["apiVersion"], answered["kind"] = version, c.kind.Kind
	return writeDocument(w, r, http.StatusCreated, answered)
}

func isOneOf(value any, values ...any) bool { return slices.Contains(values, value) }

func (c *call) answerReview(ctx context.Context, who user.Info, object document.Object) (document.Object, error) {
	switch c.info.Resource {
	case "selfsubjectreviews":
		return answer(object, &authenticationv1.SelfSubjectReview{}, func(review *authenticationv1.SelfSubjectReview) error {
			review.Status.UserInfo = requester.InfoOf(who)
			return nil
		})
	case "selfsubjectrulesreviews":
		return answer(object, &authorizationv1.SelfSubjectRulesReview{}, func(review *authorizationv1.SelfSubjectRulesReview) error {
			return c.rules(ctx, who, review)
		})
	case "selfsubjectaccessreviews":
		return answer(object, &authorizationv1.SelfSubjectAccessReview{}, func(review *authorizationv1.SelfSubjectAccessReview) (err error) {
			review.Status, err = c.access(ctx, authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: review.Spec.ResourceAttributes, NonResourceAttributes: review.Spec.NonResourceAttributes, User: who.GetName(),
			}, who)
			return err
		})
	case "subjectaccessreviews":
		return answer(object, &authorizationv1.SubjectAccessReview{}, func(review *authorizationv1.SubjectAccessReview) (err error) {
			review.Status, err = c.access(ctx, review.Spec, subjectOf(review.Spec))
			return err
		})
	case "localsubjectaccessreviews":
		return answer(object, &authorizationv1.LocalSubjectAccessReview{}, func(review *authorizationv1.LocalSubjectAccessReview) (err error) {
			if attributes := review.Spec.ResourceAttributes; attributes == nil || attributes.Namespace != c.info.Namespace {
				return c.wrong(field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), attributes, "must match metadata.namespace"))
			}
			review.Namespace = c.info.Namespace
			review.Status, err = c.access(ctx, review.Spec, subjectOf(review.Spec))
			return err
		})
	}
	return nil, fmt.Errorf("the gateway has no answer to %s", c.info.Resource)
}

// answer answers a review in its own document.
func answer[T any](object document.Object, review *T, decide func(*T) error) (document.Object, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, review); err != nil {
		return nil, badRequest(err)
	}
	if err := decide(review); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(review)
}

// wrong is the error of a review that asks nothing.
func (c *call) wrong(err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}, "", field.ErrorList{err})
}

// access decides whether a user has a permission.
func (c *call) access(
	ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec, who user.Info,
) (authorizationv1.SubjectAccessReviewStatus, error) {
	at := field.NewPath("spec")
	var status authorizationv1.SubjectAccessReviewStatus
	switch {
	case spec.User == "" && len(spec.Groups) == 0:
		return status, c.wrong(field.Invalid(at.Child("user"), spec.User, "at least one of user or group must be specified"))
	case spec.ResourceAttributes != nil && spec.NonResourceAttributes != nil:
		return status, c.wrong(field.Invalid(at.Child("nonResourceAttributes"), spec.NonResourceAttributes,
			"cannot be specified in combination with resourceAttributes"))
	case spec.ResourceAttributes == nil && spec.NonResourceAttributes == nil:
		return status, c.wrong(field.Invalid(at.Child("resourceAttributes"), spec.NonResourceAttributes,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	decision, reason, err := c.Authorize.Authorize(ctx, attributesOf(spec, who))
	status.Allowed, status.Denied, status.Reason = decision == authorizer.DecisionAllow, decision == authorizer.DecisionDeny, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status, nil
}

func attributesOf(spec authorizationv1.SubjectAccessReviewSpec, who user.Info) authorizer.AttributesRecord {
	if asked := spec.NonResourceAttributes; asked != nil {
		return authorizer.AttributesRecord{User: who, Verb: asked.Verb, Path: asked.Path}
	}
	asked := spec.ResourceAttributes
	return authorizer.AttributesRecord{
		User: who, Verb: asked.Verb, Namespace: asked.Namespace, APIGroup: asked.Group, APIVersion: asked.Version,
		Resource: asked.Resource, Subresource: asked.Subresource, Name: asked.Name, ResourceRequest: true,
	}
}

// rules answers which permissions a user has in a namespace.
func (c *call) rules(ctx context.Context, who user.Info, review *authorizationv1.SelfSubjectRulesReview) error {
	if review.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	resources, others, incomplete, err := c.RBAC.RulesFor(ctx, who, review.Spec.Namespace)
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: incomplete,
	}
	for _, rule := range resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range others {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs(),
		})
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	review.Status = status
	return nil
}

// subjectOf returns the user that a review is about.
func subjectOf(spec authorizationv1.SubjectAccessReviewSpec) user.Info {
	info := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		info.Extra[key] = values
	}
	return info
}
