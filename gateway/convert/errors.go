package convert

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

var namespacesResource = schema.GroupResource{Resource: "namespaces"}

var (
	// errTaken is a namespace of the super cluster that is not the tenant's,
	// although it has the name of the tenant's.
	errTaken = errors.New("the platform uses the name: choose another")
	// errPlatforms is the name of an object of the platform.
	errPlatforms = fmt.Errorf("names that end in .%s are the platform's", names.Domain)
	// errSilent is a super cluster that does not answer. The cause would name it.
	errSilent = apierrors.NewServiceUnavailable("the super cluster does not answer")
	// errShared is a deletion of an object that all tenants share.
	errShared = errors.New("each cluster has it, and this one has not changed it: change it instead")
	// errOffered is a change of an object that the platform offers.
	errOffered = errors.New("the platform offers it: a tenant reads it, and creates others under another name")
	// errNoInitialEvents is a watch that is to begin with a list. Clients list
	// instead.
	errNoInitialEvents = apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "WatchOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "the kind does not have it: list, and watch from there"),
	})
	// errNoApply is a server-side apply of an object that a subresource changes in
	// part: what it makes of it is known afterwards only.
	errNoApply = errors.New("the kind has no server-side apply: create, update or patch it")
	// errClient is a configuration of a webhook of another JSON type.
	errClient = errors.New("the configuration of a webhook is an object")
	// errNoWebhook is a CRD that would get a conversion webhook.
	errNoWebhook = errors.New("the policy of the tenant does not allow conversion webhooks: set spec.conversion.strategy to None, " +
		"or ask the platform for spec.policy.allowConversionWebhooks")
	// errNoForm is a review that is to be a Table.
	errNoForm = &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + jsonType,
	}}
	// errExpired is a token to continue a list that was not made for the request.
	errExpired = apierrors.NewResourceExpired("the token to continue the list is not one of this list, or too old: begin again")
)

// apiError returns an error as one of the API.
func apiError(err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return apierrors.NewRequestEntityTooLargeError(tooLarge.Error())
	}
	return apierrors.NewInternalError(err)
}

// invalid returns the error of a document that cannot be converted.
func (c *call) invalid(err error) error {
	at, ok := errors.AsType[*document.FieldError](err)
	if !ok {
		return apierrors.NewBadRequest(err.Error())
	}
	kind := schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}
	return apierrors.NewInvalid(kind, c.name, field.ErrorList{{Type: field.ErrorTypeForbidden, Field: at.Path, Detail: at.Err.Error()}})
}

// unsupported is the error of a body in a format that is not served.
func unsupported(mediaType string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unsupported format: " + mediaType,
	}}
}

// tooOften is the error for a tenant that has to wait for its next request of a sort.
func tooOften(wait time.Duration, why string) error {
	seconds := int(math.Ceil(wait.Seconds()))
	return apierrors.NewTooManyRequests(fmt.Sprintf("%s: try again in %d seconds", why, seconds), seconds)
}
