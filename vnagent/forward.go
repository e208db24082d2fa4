package vnagent

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/streaming/pkg/httpstream"
)

// upgradePatience is how long the super cluster may take to begin a stream.
// Logs may take for ever to their first line.
const upgradePatience = 30 * time.Second

var errPatience = errors.New("the super cluster did not begin the stream in time")

// Headers that belong to a stream and are handed on. All others are dropped: on
// the way down, a tenant could impersonate another user by them; on the way up,
// they are the super cluster's own.
var (
	headersDown = []string{
		"Connection", "Upgrade", "X-Stream-Protocol-Version",
		"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions",
	}
	headersUp = []string{
		"Connection", "Upgrade", "X-Stream-Protocol-Version", "X-Accepted-Stream-Protocol-Versions",
		"Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions", "Content-Type",
	}
)

// only are the headers of these names.
func only(all http.Header, wanted []string) http.Header {
	kept := http.Header{}
	for _, name := range wanted {
		if values := all[name]; len(values) > 0 {
			kept[name] = values
		}
	}
	return kept
}

// forward sends an order to the super cluster, and forwards the answer as it arrives.
func (h *handler) forward(w http.ResponseWriter, r *http.Request, o order) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	transport, giveUp := h.super.plain, (*time.Timer)(nil)
	if httpstream.IsUpgradeRequest(r) {
		transport = h.super.streams
		giveUp = time.AfterFunc(upgradePatience, func() { cancel(errPatience) })
	}
	began := time.Now()
	log := h.log.WithValues("call", o.target.call, "pod", o.pod)
	proxy := httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // at once
		BufferPool:    buffers{},
		ErrorLog:      errorLog(log),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = h.super.location(o), ""
			p.Out.Header = only(p.Out.Header, headersDown)
			p.Out.Body, p.Out.ContentLength = http.NoBody, 0
		},
		ModifyResponse: func(response *http.Response) error {
			if giveUp != nil {
				giveUp.Stop()
			}
			h.metrics.beginning.WithLabelValues(string(o.target.call)).Observe(time.Since(began).Seconds())
			return h.handOver(o, response)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client is gone
			}
			h.refuse(w, o.target, errors.Join(context.Cause(ctx), err))
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// handOver makes the super cluster's answer one for the tenant.
func (h *handler) handOver(o order, response *http.Response) error {
	if response.StatusCode >= http.StatusBadRequest {
		return explain(o, response)
	}
	h.count(o.target.call, response.StatusCode)
	response.Header = only(response.Header, headersUp)
	carried := h.metrics.bytes.MustCurryWith(map[string]string{"call": string(o.target.call)})
	up := carried.WithLabelValues(fromPod)
	if stream, ok := response.Body.(io.ReadWriteCloser); ok {
		response.Body = &countedStream{ReadWriteCloser: stream, up: up, down: carried.WithLabelValues(toPod)}
	} else {
		response.Body = &countedBody{ReadCloser: response.Body, up: up}
	}
	return nil
}

// errorLog is where the proxy tells of streams that broke off, which is how
// most of them end.
func errorLog(logger logr.Logger) *log.Logger {
	return slog.NewLogLogger(logr.ToSlogHandler(logger.V(1)), slog.LevelInfo)
}
