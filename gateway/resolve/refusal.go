package resolve

import (
	"fmt"
	"net/http"
	"time"
)

// Refusal is why a request is not forwarded.
//
//nolint:errname // resolve.Refusal says what it is; it is a response, and no error of the program
type Refusal struct {
	// Code is the status of the response.
	Code int
	// Message says what is wrong and what to do.
	Message string
	// RetryAfter is when a repeated request may be served; 0 for never.
	RetryAfter time.Duration
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

func misdirected(message string) *Refusal {
	return &Refusal{Code: http.StatusMisdirectedRequest, Message: message}
}
