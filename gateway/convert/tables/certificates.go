package tables

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

var requestColumns = []metav1.TableColumnDefinition{
	nameColumn,
	ageColumn,
	{Name: "SignerName", Type: text, Description: certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"]},
	{Name: "Requestor", Type: text, Description: certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["username"]},
	{Name: "RequestedDuration", Type: text, Description: certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"]},
	{Name: "Condition", Type: text, Description: certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"]},
}

func requestCells(object map[string]any) ([]any, error) {
	var request certificatesv1.CertificateSigningRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &request); err != nil {
		return nil, err
	}
	requested := "<none>"
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		requested = duration.HumanDuration(time.Duration(*seconds) * time.Second)
	}
	return []any{
		request.Name, age(request.ObjectMeta), request.Spec.SignerName, request.Spec.Username, requested, decisionOf(&request.Status),
	}, nil
}

// decisionOf returns how far a request is.
func decisionOf(status *certificatesv1.CertificateSigningRequestStatus) string {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, condition := range status.Conditions {
		has[condition.Type] = true
	}
	steps := []string{"Pending"}
	switch {
	case has[certificatesv1.CertificateDenied]:
		steps[0] = "Denied"
	case has[certificatesv1.CertificateApproved]:
		steps[0] = "Approved"
	}
	if has[certificatesv1.CertificateFailed] {
		steps = append(steps, "Failed")
	}
	if len(status.Certificate) > 0 {
		steps = append(steps, "Issued")
	}
	return strings.Join(steps, ",")
}
