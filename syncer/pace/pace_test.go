package pace

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// paced is a pace that records calls of tell.
type paced struct {
	*Pace
	told []bool
}

func newPaced() *paced {
	p := &paced{}
	p.Pace = New(&Usual{}, func(slow bool) { p.told = append(p.told, slow) })
	return p
}

// send sends a request that takes some time.
func (p *paced) send(side string, takes time.Duration) {
	end := p.Begin(side)
	time.Sleep(takes)
	synctest.Wait()
	end(true)
}

// sendAll sends requests to the tenant.
func (p *paced) sendAll(n int, takes time.Duration) {
	for range n {
		p.send(requests.Tenant, takes)
	}
}

// TestPace checks that one late answer makes a tenant slow, and consecutive
// answers in time make it fast again; each time it takes more of them.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		p.sendAll(100, time.Millisecond)
		if len(p.told) > 0 {
			t.Fatalf("a fast tenant: told %v", p.told)
		}
		for proof := 2 * leastProof; proof <= mostProof; proof *= 2 {
			p.told = nil
			p.sendAll(1, time.Second)
			p.sendAll(proof-1, time.Millisecond)
			p.sendAll(1, time.Second)
			p.sendAll(proof-1, time.Millisecond)
			if fmt.Sprint(p.told) != "[true]" {
				t.Fatalf("with a proof of %d: told %v", proof, p.told)
			}
			p.sendAll(1, time.Millisecond)
			if fmt.Sprint(p.told) != "[true false]" {
				t.Fatalf("after a proof of %d: told %v", proof, p.told)
			}
		}
		p.sendAll(20*mostProof, time.Millisecond)
		if p.proof != leastProof {
			t.Errorf("after a long time of answers in time the proof is %d", p.proof)
		}
	})
}

// TestPaceDoesNotWaitForTheAnswer checks that a tenant becomes slow while its
// worker still waits.
func TestPaceDoesNotWaitForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		p.Begin(requests.Tenant)
		time.Sleep(leastInTime)
		synctest.Wait()
		if fmt.Sprint(p.told) != "[true]" {
			t.Errorf("told %v", p.told)
		}
	})
}

// TestPaceOfALoadedMachine checks that a tenant is not slow if the super
// cluster is slow as well, and that a failed request does not count.
func TestPaceOfALoadedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		for range 100 {
			p.send(requests.Super, 80*time.Millisecond)
		}
		p.sendAll(10, 500*time.Millisecond)
		if len(p.told) > 0 {
			t.Errorf("told %v", p.told)
		}
		for range 1000 {
			p.send(requests.Super, time.Minute)
		}
		p.sendAll(1, mostInTime)
		for range mostProof {
			p.Begin(requests.Tenant)(false)
		}
		if fmt.Sprint(p.told) != "[true]" {
			t.Errorf("told %v", p.told)
		}
	})
}
