package vnagent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// maxExplanation bounds what is read of an error.
const maxExplanation = 16 << 10

// explain makes an error of an answer that is none. The tenant is shown errors
// of kubelets and of the request, but no errors between the super cluster and
// its nodes.
func explain(o order, response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxExplanation)) // half an explanation is one, too
	_ = response.Body.Close()
	status := metav1.Status{}
	fromApiserver := json.Unmarshal(body, &status) == nil && status.Kind == "Status"
	message := strings.TrimSpace(string(body))
	if fromApiserver {
		message = status.Message
	}
	code := response.StatusCode
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, message == "",
		fromApiserver && code >= http.StatusInternalServerError:
		// A right that the agent lacks, or a node that does not answer.
		return fmt.Errorf("the super cluster answers %d about pod %s: %s", code, o.pod, message)
	default:
		return &refusal{code: code, message: names.TenantText(message, o.tenant.key, o.tenant.name, o.target.namespace)}
	}
}
