package tenanthttp

import (
	"net/url"
	"sync"
)

// lists are the lists that are read in pages, by path and selectors. There are
// as many as a client has lists.
type lists struct {
	mu    sync.Mutex
	known map[string]*total
}

// total is what has been read of a list.
type total struct {
	mu    sync.Mutex
	bytes int64
	pages int
}

// page begins a page of a list and returns what has been read of the list, and
// what may be read of the page. A page without a token to continue with is the
// first.
func (l *lists) page(u *url.URL, limits Limits) (of *total, most int64, limit string) {
	query := u.Query()
	first := query.Get("continue") == ""
	query.Del("continue")
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	query.Del("limit")
	key := u.Path + "?" + query.Encode()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]*total{}
	}
	if first || l.known[key] == nil {
		l.known[key] = &total{}
	}
	of = l.known[key]
	of.mu.Lock()
	defer of.mu.Unlock()
	of.pages++
	left := limits.List - of.bytes
	if of.pages > limits.Pages {
		return of, 0, "the pages of a list"
	}
	if left < limits.Page {
		return of, left, "the bytes of a list"
	}
	return of, limits.Page, "the bytes of a page"
}

// listMeter measures a page of a list, and adds it to the total of the list.
type listMeter struct {
	meter

	total *total
}

func (m listMeter) count(data []byte) string {
	m.total.mu.Lock()
	m.total.bytes += int64(len(data))
	m.total.mu.Unlock()
	return m.meter.count(data)
}
