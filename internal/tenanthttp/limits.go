package tenanthttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Limits bound what is read from an apiserver, in bytes of what is decoded.
type Limits struct {
	// Object bounds the answer to a request for one object, or to a write.
	Object int64
	// Event bounds one event of a watch, of which there may be any number.
	Event int64
	// Page bounds one answer to a list, and List the whole list, in at most
	// Pages.
	Page, List int64
	Pages      int
	// Elements bounds the objects, lists and nulls in JSON of an apiserver that
	// is not trusted; an item of a list may add some.
	Elements int64
	// Error bounds the answer to a request that failed.
	Error int64
	// Time bounds a request from its beginning to the end of its answer,
	// ListTime that for a list. A watch has no such end.
	Time, ListTime time.Duration
}

// DefaultLimits suffice for every honest apiserver: etcd takes no object of
// more than 1.5 MiB, which Base64 and the keys of JSON at most double, and a
// list comes as a stream of events, or in pages of 500.
func DefaultLimits() Limits {
	return Limits{
		Object: 4 << 20, Event: 4 << 20,
		Page: 32 << 20, List: 256 << 20, Pages: 2000,
		Elements: 64 << 10,
		Error:    64 << 10,
		Time:     30 * time.Second, ListTime: 2 * time.Minute,
	}
}

// ExceededError says that an answer is more than may be read.
type ExceededError struct {
	// Path is the path of the request, and What its kind, such as a list.
	What, Path string
	// Limit names the limit that was exceeded.
	Limit string
}

// Error returns the request and the limit that it exceeded.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("the tenant's apiserver answers %s of %s with more than %s", e.What, e.Path, e.Limit)
}

// RedirectError says that an apiserver answered with a redirect, which no
// honest apiserver does.
type RedirectError struct {
	// Code is the status.
	Code int
}

// Error says what was answered, and not where it leads.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("the tenant's apiserver redirects (%d %s), which is not followed", e.Code, http.StatusText(e.Code))
}

// FormatError says that an answer has a format that was not asked for.
type FormatError struct{ header string }

// Error names the header that states the format.
func (e *FormatError) Error() string {
	return "the tenant's apiserver answers in a " + e.header + " that was not asked for"
}

// Refusal returns the cause of an error if an answer was refused; nil for other
// errors.
func Refusal(err error) error {
	if exceeded, ok := errors.AsType[*ExceededError](err); ok {
		return exceeded
	}
	if redirect, ok := errors.AsType[*RedirectError](err); ok {
		return redirect
	}
	if format, ok := errors.AsType[*FormatError](err); ok {
		return format
	}
	return nil
}

// Kinds of requests, as errors name them.
const (
	anObject = "a request"
	aList    = "a list"
	aWatch   = "a watch"
)

// kindOf returns the kind of a request, which decides about the limits of its
// answer.
func kindOf(r *http.Request) string {
	switch {
	case r.Method != http.MethodGet:
		return anObject
	case r.URL.Query().Get("watch") != "":
		return aWatch
	case isCollection(r.URL.Path):
		return aList
	}
	return anObject
}

// isCollection reports whether a path is that of all objects of a resource
// (Kubernetes API Concepts: resource URIs). The path may have a prefix from the
// kubeconfig.
func isCollection(path string) bool {
	elements := strings.Split(strings.Trim(path, "/"), "/")
	for i, element := range elements {
		rest := elements[i+1:]
		switch {
		case element == "api" && len(rest) > 1:
			return isResource(rest[1:])
		case element == "apis" && len(rest) > 2:
			return isResource(rest[2:])
		}
	}
	return false
}

// isResource reports whether the elements behind a version are those of all
// objects of a resource.
func isResource(elements []string) bool {
	if elements[0] == "namespaces" && len(elements) > 1 {
		return len(elements) == 3
	}
	return len(elements) == 1
}
