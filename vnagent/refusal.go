package vnagent

import (
	"errors"
	"fmt"
	"net/http"
)

// unavailable is what a tenant is told of what is none of its business: the super cluster's errors name its nodes and namespaces.
const unavailable = "the node cannot be reached now; try again, and tell the platform's admin if it stays so"

// refusal is an answer other than what was asked for, in words for the tenant.
type refusal struct {
	code    int
	message string
}

// Error is the message.
func (r *refusal) Error() string { return r.message }

func refusef(code int, format string, args ...any) error {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// asRefusal is what the tenant is told of an error.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return &refusal{code: http.StatusInternalServerError, message: unavailable}
}
