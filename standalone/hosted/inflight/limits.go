package inflight

import (
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Limits limits the requests that a tenant has in flight. Zero means no limit.
type Limits struct {
	// Reads limits gets and lists. Writes limits all requests that write, and as
	// many calls of webhooks beside them.
	Reads, Writes int
	// Watches limits watches and other long-running requests: logs, exec, and
	// proxies.
	Watches int
}

// Kind is a kind of requests that has a limit of its own.
type Kind int

// All kinds.
const (
	// Read is a get, a list, or a request of no resource, such as discovery.
	Read Kind = iota
	// Write is a request that writes.
	Write
	// Watch is a watch or another long-running request.
	Watch
	// WebhookCall is the call of a webhook that leads to the apiserver itself. It
	// does not wait for writes, which may wait for it.
	WebhookCall
)

const kinds = 4

// String returns the kind as in metrics.
func (k Kind) String() string { return [kinds]string{"read", "write", "watch", "webhook"}[k] }

// Of returns the limit of a kind.
func (l Limits) Of(kind Kind) int { return [kinds]int{l.Reads, l.Writes, l.Watches, l.Writes}[kind] }

// kindOf returns the kind of a request.
func kindOf(info *apirequest.RequestInfo, longRunning, callsWebhook bool) Kind {
	switch {
	case callsWebhook:
		return WebhookCall
	case longRunning:
		return Watch
	case !info.IsResourceRequest, info.Verb == "get", info.Verb == "list":
		return Read
	default:
		return Write
	}
}

// Reason is the limit that a request exceeded.
type Reason string

const (
	// ReasonReads means the number of reads.
	ReasonReads Reason = "reads"
	// ReasonWrites means the number of writes.
	ReasonWrites Reason = "writes"
	// ReasonWatches means the number of watches and other long-running
	// requests.
	ReasonWatches Reason = "watches"
	// ReasonWebhooks means the number of calls of webhooks that lead to the
	// apiserver itself.
	ReasonWebhooks Reason = "webhooks"
	// ReasonMemory means the memory of the tenant's requests.
	ReasonMemory Reason = "memory"
	// ReasonHeads means the memory of URLs, headers and selectors of the tenant's
	// requests.
	ReasonHeads Reason = "heads"
	// ReasonHost means the memory of the large requests of all tenants.
	ReasonHost Reason = "host"
	// ReasonPressure means that the process is short of memory and that the
	// tenant's requests take the most of it.
	ReasonPressure Reason = "pressure"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{ReasonReads, ReasonWrites, ReasonWatches, ReasonWebhooks, ReasonMemory, ReasonHeads, ReasonHost, ReasonPressure}
}

func reasonOf(kind Kind) Reason {
	return [kinds]Reason{ReasonReads, ReasonWrites, ReasonWatches, ReasonWebhooks}[kind]
}
