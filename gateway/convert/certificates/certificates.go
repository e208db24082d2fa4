// Package certificates does to the certificate signing requests of a tenant what an
// apiserver does before it stores them.
package certificates

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
)

// Request is a certificate signing request.
type Request = certificatesv1.CertificateSigningRequest

// The subresources of a request: who approves it, and who signs it.
const (
	Approval = "approval"
	Status   = "status"
)

// Create completes a request that a user creates, and returns what is wrong with it.
func Create(who user.Info, request *Request) field.ErrorList {
	info := requester.InfoOf(who)
	spec := &request.Spec
	spec.Username, spec.UID, spec.Groups, spec.Extra = info.Username, info.UID, info.Groups, nil
	for key, values := range info.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		spec.Extra[key] = certificatesv1.ExtraValue(values)
	}
	request.Status = certificatesv1.CertificateSigningRequestStatus{}
	return validateSpec(spec)
}

// Change keeps of a changed request what its update, or that of a subresource,
// cannot change, and returns what is wrong with the rest.
func Change(subresource string, before, after *Request, now time.Time) field.ErrorList {
	after.Spec = before.Spec
	switch subresource {
	case Approval:
		conditions := after.Status.Conditions
		after.Status = before.Status
		after.Status.Conditions = conditions
	case Status:
		keepDecisions(before, after)
	default:
		after.Status = before.Status
		return nil
	}
	setTimes(before, after, metav1.NewTime(now))
	wrong := validateConditions(before.Status.Conditions, after.Status.Conditions)
	if subresource == Status {
		wrong = append(wrong, validateSigned(before, after)...)
	}
	return wrong
}

// decisions are the conditions that the approval alone changes.
var decisions = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}

func isDecision(condition certificatesv1.CertificateSigningRequestCondition) bool {
	return slices.Contains(decisions, condition.Type)
}

// keepDecisions keeps the decisions as they are, if there are as many as before.
func keepDecisions(before, after *Request) {
	for i, condition := range after.Status.Conditions {
		if !isDecision(condition) {
			continue
		}
		if old := find(before.Status.Conditions, condition.Type); old != nil {
			after.Status.Conditions[i] = *old
		}
	}
}

// setTimes sets the times that conditions lack.
func setTimes(before, after *Request, now metav1.Time) {
	for i := range after.Status.Conditions {
		condition := &after.Status.Conditions[i]
		if condition.LastUpdateTime.IsZero() {
			condition.LastUpdateTime = now
		}
		if !condition.LastTransitionTime.IsZero() {
			continue
		}
		condition.LastTransitionTime = now
		old := find(before.Status.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
}

func find(
	conditions []certificatesv1.CertificateSigningRequestCondition, of certificatesv1.RequestConditionType,
) *certificatesv1.CertificateSigningRequestCondition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}
