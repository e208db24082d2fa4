package convert

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
)

// addressAttempts is how often a request is sent if the super cluster chooses
// reserved addresses for a Service. It chooses one of its ranges at random, and
// then an address: about every second choice is reserved.
const addressAttempts = 20

// choseReserved reports whether a request failed because the super cluster chose
// an address for a Service that is reserved for other tenants.
func (c *call) choseReserved(response *http.Response) bool {
	if c.kind.Group != "" || c.kind.Resource != "services" || response.StatusCode != http.StatusForbidden {
		return false
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	var status metav1.Status
	if err != nil || json.Unmarshal(data, &status) != nil {
		return false // who reads the body next finds out
	}
	return servicecidr.IsRejection(&apierrors.StatusError{ErrStatus: status})
}
