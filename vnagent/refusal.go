package vnagent

import (
	"errors"
	"fmt"
	"net/http"
)

// unavailable is the message for errors that tenants must not see: the super
// cluster's errors name its nodes and namespaces.
const unavailable = "the node cannot be reached now; try again, and tell the platform's admin if it stays so"

// refusal is an error response, with a message for the tenant.
type refusal struct {
	code    int
	message string
}

// Error is the message.
func (r *refusal) Error() string { return r.message }

func refusef(code int, format string, args ...any) error {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// asRefusal returns the answer for a tenant to an error.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return &refusal{code: http.StatusInternalServerError, message: unavailable}
}
