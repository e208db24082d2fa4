package tenanthttp

import (
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
	// maxRetryAfter is the longest Retry-After that a client obeys.
	maxRetryAfter = 10 * time.Second
)

// bounded sends requests and bounds what is read of the answers.
type bounded struct {
	next  http.RoundTripper
	opts  Options
	lists lists
}

func newBounded(next http.RoundTripper, opts Options) *bounded {
	return &bounded{next: next, opts: opts}
}

// RoundTrip sends a request.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := kindOf(r)
	ctx, cancel := b.deadline(r.Context(), kind)
	r = r.Clone(ctx)
	if b.opts.Untrusted {
		askForLittle(r, kind)
	}
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		if err = b.check(answer); err != nil {
			_ = answer.Body.Close()
			b.refused(kind, err)
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	b.bound(r, kind, answer, cancel)
	return answer, nil
}

// deadline bounds the time of a request.
func (b *bounded) deadline(ctx context.Context, kind string) (context.Context, context.CancelFunc) {
	switch kind {
	case aWatch:
		return context.WithCancel(ctx)
	case aList:
		return context.WithTimeout(ctx, b.opts.Limits.ListTime)
	}
	return context.WithTimeout(ctx, b.opts.Limits.Time)
}

// pageSize is the page size of lists from an untrusted apiserver.
const pageSize = 100

// askForLittle removes all formats but JSON from those that a request accepts,
// and asks for a list in small pages, not at resource version 0, at which
// apiservers ignore the page size.
func askForLittle(r *http.Request, kind string) {
	accepted := strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",")
	accepted = slices.DeleteFunc(accepted, func(format string) bool { return !strings.HasPrefix(strings.TrimSpace(format), jsonType) })
	if len(accepted) == 0 {
		accepted = []string{jsonType}
	}
	r.Header.Set("Accept", strings.Join(accepted, ","))
	query := r.URL.Query()
	if kind != aList || query.Get("limit") == "" {
		return
	}
	query.Set("limit", strconv.Itoa(pageSize))
	if query.Get("resourceVersion") == "0" {
		query.Del("resourceVersion")
	}
	r.URL.RawQuery = query.Encode()
}

// check refuses answers that no honest apiserver gives.
func (b *bounded) check(answer *http.Response) error {
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		return &RedirectError{answer.StatusCode}
	}
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return &FormatError{"Content-Encoding"}
	}
	if b.opts.Untrusted && !isExpected(answer) {
		return &FormatError{"Content-Type"}
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || seconds > int(maxRetryAfter.Seconds()) {
		answer.Header.Del("Retry-After")
	}
	return nil
}

// isExpected reports whether an answer is in JSON. Errors can be text of a proxy,
// but not in protobuf: the decoder of errors takes all types that the client has,
// without a limit of depth and of time.
func isExpected(answer *http.Response) bool {
	format := formatOf(answer)
	return format == jsonType || answer.StatusCode >= http.StatusMultipleChoices && format != protobufType
}

func formatOf(answer *http.Response) string {
	format, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return format
}

// bound bounds what is read of an answer.
func (b *bounded) bound(r *http.Request, kind string, answer *http.Response, cancel context.CancelFunc) {
	body := &body{ReadCloser: answer.Body, what: kind, path: r.URL.Path, close: cancel, refused: b.refused}
	if answer.StatusCode >= http.StatusBadRequest {
		body.meter = &wholeMeter{most: b.opts.Limits.Error, limit: "the bytes of an error"}
	} else {
		body.meter = b.meterOf(r, kind, formatOf(answer) == protobufType)
	}
	answer.Body = body
}

// refused reports a refused answer to a list or watch. For other requests, the
// error of the request says so.
func (b *bounded) refused(kind string, err error) {
	if kind != anObject && b.opts.Refused != nil {
		b.opts.Refused(err)
	}
}

// meterOf returns the meter of a successful answer.
func (b *bounded) meterOf(r *http.Request, kind string, protobuf bool) meter {
	limits := b.opts.Limits
	most, limit := limits.Object, "the bytes of an object"
	var pages *total
	switch kind {
	case aWatch:
		most, limit = limits.Event, "the bytes of an event"
	case aList:
		pages, most, limit = b.lists.page(r.URL, limits)
	}
	var m meter
	switch {
	case protobuf && kind == aWatch:
		m = &frameMeter{most: most}
	case protobuf:
		m = &wholeMeter{most: most, limit: limit}
	default:
		m = b.jsonMeter(r, kind, most, limit)
	}
	if pages != nil {
		m = listMeter{total: pages, meter: m}
	}
	return m
}

// jsonMeter returns the meter of an answer in JSON, of which an untrusted
// apiserver may send fewer elements and items.
func (b *bounded) jsonMeter(r *http.Request, kind string, most int64, limit string) meter {
	m := &jsonMeter{most: most, limit: limit, each: kind == aWatch}
	if b.opts.Untrusted {
		m.elements = b.opts.Limits.Elements
		if kind == aList && r.URL.Query().Get("limit") != "" {
			m.items = pageSize
		}
	}
	return m
}

// body is an answer that is measured while it is read.
type body struct {
	io.ReadCloser

	meter      meter
	what, path string
	close      context.CancelFunc
	refused    func(kind string, err error)
	failed     error
}

// Read reads until the limit is exceeded.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(p)
	if limit := b.meter.count(p[:n]); limit != "" {
		b.failed = &ExceededError{What: b.what, Path: b.path, Limit: limit}
		b.close()
		b.refused(b.what, b.failed)
		return 0, b.failed
	}
	return n, err
}

// Close closes the answer and ends its time.
func (b *body) Close() error {
	defer b.close()
	return b.ReadCloser.Close()
}
