package share

import "slices"

// member decides what one replica serves. It does no I/O: it is told what the leases of the others say, and that its own view has
// been published.
type member struct {
	replica string
	// view is what was published last, or is to be; nil before the first time.
	view      view
	published bool
}

// see takes in what the leases say that were listed after the last call to wrote. The shares that it returns have to be served, and
// nothing else may be any more, before the view is published; if it has to be, nothing begins before that has been done and the leases
// have been listed again.
func (m *member) see(others claims) (shares Shares, publish bool) {
	if now := others.with(m.replica); !slices.Equal(now, m.view) {
		m.view, m.published = now, false
	}
	if !m.published {
		return Shares{replica: m.replica, view: m.view}, true
	}
	return Shares{replica: m.replica, view: m.view, listed: true, claims: others}, false
}

// wrote is told that the view has been published.
func (m *member) wrote() { m.published = true }
