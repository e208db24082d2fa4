package inflight

// grant is what a request in flight has.
type grant struct {
	tenant *Tenant
	kind   Kind
	// held counts for the tenant, shared for the host.
	held, shared int64
	// head is the part of held that stays until the end of the request, and unread
	// the one that a client has not read.
	head, unread int64
	large        bool
	// over says that the request has ended.
	over bool
}

func (t *Tenant) lockedGrant(d demand) *grant {
	g := &grant{tenant: t, kind: d.kind, held: d.own(), shared: d.shared(t.host.capacity), head: d.head, large: d.isLarge()}
	t.running[g.kind]++
	t.heads += g.head
	t.held += g.held
	t.host.held += g.shared
	if g.large {
		t.large += g.held
	}
	if g.isLargeRead() {
		t.largeReads++
	}
	return g
}

func (g *grant) isLargeRead() bool { return g.large && g.kind == Read }

// holdsMore reports whether the request has memory that it does not need until its
// end.
func (g *grant) holdsMore() bool { return g.held > g.head }

// release ends the request.
func (g *grant) release() {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	g.tenant.running[g.kind]--
	g.over = true
	g.lockedForget()
	g.tenant.heads -= g.head
	g.head = 0
	g.lockedReleaseMemory()
}

// releaseMemory keeps the request in flight without its memory, except its head and
// what its client has not read.
func (g *grant) releaseMemory() {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	g.lockedReleaseMemory()
}

func (g *grant) lockedReleaseMemory() {
	t := g.tenant
	kept := g.head + g.unread
	t.held -= g.held - kept
	t.host.held -= g.shared
	if g.large {
		t.large -= g.held
	}
	if g.isLargeRead() {
		t.largeReads--
	}
	all := g.shared > 0
	g.held, g.shared, g.large = kept, 0, false
	t.host.lockedWake(t, all)
}

// keep counts what the client of a watch has not read, in steps, and reports
// whether there is memory for it. All watches of a tenant leave some to other
// requests: these would wait for a client that may never read.
func (g *grant) keep(unread int64) bool {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for g.unread < unread {
		if !g.tenant.isPlatform() && g.tenant.unread+unreadStep > unreadBudget || !g.lockedGrow(unreadStep) {
			return false
		}
		g.unread += unreadStep
		g.tenant.unread += unreadStep
	}
	return true
}

// forget takes back what keep has counted.
func (g *grant) forget() {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.unread > 0 {
		g.lockedForget()
		h.lockedWake(g.tenant, false)
	}
}

func (g *grant) lockedForget() {
	t := g.tenant
	t.held -= g.unread
	t.unread -= g.unread
	g.held -= g.unread
	if g.large {
		t.large -= g.unread
	}
	g.unread = 0
}

// grow adds to the memory of a request that turns out to need more, and reports
// whether there is as much. It does not wait: the request has memory already,
// and others that wait have less.
func (g *grant) grow(bytes int64) bool {
	g.tenant.host.mu.Lock()
	defer g.tenant.host.mu.Unlock()
	return g.lockedGrow(bytes)
}

func (g *grant) lockedGrow(bytes int64) bool {
	t := g.tenant
	switch {
	case g.over:
		return false
	case t.isPlatform():
	case t.held+bytes > tenantBudget, bytes > smallRequest && t.host.held+bytes > t.host.capacity:
		return false
	}
	if bytes > smallRequest {
		t.host.held += bytes
		g.shared += bytes
	}
	t.held += bytes
	g.held += bytes
	if g.large {
		t.large += bytes
	}
	return true
}
