package inflight

// grant is what a request in flight has.
type grant struct {
	tenant *Tenant
	kind   Kind
	// held counts for the tenant, shared for the host.
	held, shared int64
	large        bool
	// over says that the request has ended.
	over bool
}

func (t *Tenant) lockedGrant(d demand) *grant {
	g := &grant{tenant: t, kind: d.kind, held: d.own(), shared: d.shared(t.host.capacity), large: d.isLarge()}
	t.running[g.kind]++
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

// release ends the request.
func (g *grant) release() {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	g.tenant.running[g.kind]--
	g.over = true
	g.lockedReleaseMemory()
}

// releaseMemory keeps the request in flight without its memory.
func (g *grant) releaseMemory() {
	h := g.tenant.host
	h.mu.Lock()
	defer h.mu.Unlock()
	g.lockedReleaseMemory()
}

func (g *grant) lockedReleaseMemory() {
	t := g.tenant
	t.held -= g.held
	t.host.held -= g.shared
	if g.large {
		t.large -= g.held
	}
	if g.isLargeRead() {
		t.largeReads--
	}
	all := g.shared > 0
	g.held, g.shared, g.large = 0, 0, false
	t.host.lockedWake(t, all)
}

// shrink takes back what grow has added, unless it was released.
func (g *grant) shrink(bytes int64) {
	t := g.tenant
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	bytes = min(bytes, g.held) // the rest was released
	t.held -= bytes
	g.held -= bytes
	if g.large {
		t.large -= bytes
	}
	t.host.lockedWake(t, false)
}

// grow adds to the memory of a request that turns out to need more, and reports
// whether there is as much. It does not wait: the request has memory already,
// and others that wait have less.
func (g *grant) grow(bytes int64) bool {
	t := g.tenant
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
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
