package inflight

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// longestURL and longestHeaders are in bytes, each header with fieldCost as in
	// HTTP/2 (RFC 9113, section 10.5.1).
	longestURL, longestHeaders = 64 << 10, 64 << 10
	fieldCost                  = 32
	// mostTerms is the number of requirements and values of a request's selectors.
	// All of them may be compared with each object of a list, and with each change.
	mostTerms = 1000
	// urlFactor is the memory of each byte of a URL, also of its parts, and termCost
	// that of a term.
	urlFactor, termCost = 4, 128
	// freeHead is the memory of a head that does not count: a limit of requests
	// does. headBudget is that of all heads of a tenant.
	freeHead, headBudget = 16 << 10, tenantBudget / 8
)

// head is what a request is before its body, in bytes and terms of selectors. A
// request holds it until it ends.
type head struct{ url, headers, terms int }

func headOf(r *http.Request) head {
	// A request of this process has no URL as it was sent.
	h := head{url: max(len(r.RequestURI), len(r.URL.Path)+len(r.URL.RawQuery)), headers: len(r.Host)}
	for name, values := range r.Header {
		for _, value := range values {
			h.headers += len(name) + len(value) + fieldCost
		}
	}
	if h.url <= longestURL {
		h.terms = termsOf(r.URL)
	}
	return h
}

// termsOf counts the terms of the selectors in a URL. Commas separate them.
func termsOf(u *url.URL) (terms int) {
	query := u.Query()
	for _, parameter := range []string{"labelSelector", "fieldSelector"} {
		for _, selector := range query[parameter] {
			terms += strings.Count(selector, ",") + 1
		}
	}
	return terms
}

// check returns why a request cannot be served with this head.
func (h head) check() error {
	switch {
	case h.url > longestURL:
		return tooLong(http.StatusRequestURITooLong,
			fmt.Sprintf("the URL has %d bytes, and can have %d: shorten its selectors", h.url, longestURL))
	case h.headers > longestHeaders:
		return tooLong(http.StatusRequestHeaderFieldsTooLarge,
			fmt.Sprintf("the headers have %d bytes, each of them %d more than its text, and can have %d", h.headers, fieldCost, longestHeaders))
	case h.terms > mostTerms:
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the selectors have %d requirements and values, and can have %d: send several requests, or select by fewer labels", h.terms, mostTerms))
	default:
		return nil
	}
}

func tooLong(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: text}}
}

// counted returns the memory that counts.
func (h head) counted() int64 {
	return max(0, int64(h.url)*urlFactor+int64(h.headers)+int64(h.terms)*termCost-freeHead)
}
