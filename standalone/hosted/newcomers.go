package hosted

import (
	"container/list"
	"net"
	"sync"
)

// newcomers are connections whose clients have proven nothing yet, in the order
// of their arrival. The oldest is closed for one too many: a client that has
// credentials proves it within a few round trips, and a flood does not, so that
// it displaces itself.
type newcomers struct {
	most int

	mu    sync.Mutex
	conns *list.List
}

func newNewcomers(most int) *newcomers { return &newcomers{most: most, conns: list.New()} }

// add adds a connection, and returns what takes it out again.
func (n *newcomers) add(conn net.Conn) (remove func()) {
	n.mu.Lock()
	own := n.conns.PushBack(conn)
	var oldest net.Conn
	if n.conns.Len() > n.most {
		oldest, _ = n.conns.Remove(n.conns.Front()).(net.Conn)
	}
	n.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // takes itself out, which has happened
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns.Remove(own) // nothing, if it has been displaced
	}
}

// count returns the number of connections.
func (n *newcomers) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.conns.Len()
}
