package newcomers

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// conn is a connection that is closed or not.
type conn struct {
	net.Conn

	closed bool
}

func (c *conn) Close() error {
	c.closed = true
	return nil
}

// TestTheOldestGivesWay: a flood displaces itself, and a connection that has left
// the set stays open.
func TestTheOldestGivesWay(t *testing.T) {
	g := NewWithT(t)
	set := New(2)
	conns := make([]conn, 5)
	leave := set.Add(&conns[0])
	leave()
	leave()
	removals := make([]func(), 0, 4)
	for i := range conns[1:] {
		removals = append(removals, set.Add(&conns[1+i]))
	}
	var closed []bool
	for i := range conns {
		closed = append(closed, conns[i].closed)
	}
	g.Expect(closed).To(Equal([]bool{false, true, true, false, false}))
	g.Expect(set.Count()).To(Equal(2))
	for _, remove := range removals {
		remove()
	}
	g.Expect(set.Count()).To(BeZero())
}
