package share

import "slices"

// member decides which tenants one replica serves. It does no I/O: it gets the
// leases of the others, and reports of publishing its own view.
type member struct {
	replica string
	// view is the last published view, or the one to publish; nil initially.
	view      view
	published bool
}

// observe evaluates the leases that were listed after the last call of wrote.
// The returned shares have to be served, and no others any more, before the
// view is published. If publish is set, the replica must not begin to serve a
// tenant until the view is published and the leases are listed again.
func (m *member) observe(others claims) (shares Shares, publish bool) {
	if now := others.with(m.replica); !slices.Equal(now, m.view) {
		m.view, m.published = now, false
	}
	if !m.published {
		return Shares{replica: m.replica, view: m.view}, true
	}
	return Shares{replica: m.replica, view: m.view, listed: true, claims: others}, false
}

// wrote records that the view has been published.
func (m *member) wrote() { m.published = true }
