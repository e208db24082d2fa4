// Package pace detects tenants whose apiservers answer slowly.
package pace

import (
	"sync"
	"time"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// A tenant's apiserver answers in time if it takes at most slowFactor times as
// long as the super cluster usually does, within these bounds. On a machine
// where everything is slow, no tenant counts as slow.
const (
	slowFactor              = 10
	leastInTime, mostInTime = 50 * time.Millisecond, time.Second
)

// A slow tenant counts as fast again after leastProof consecutive answers in
// time. Each time that it becomes slow doubles that number, up to mostProof,
// and as many answers in time halve it: a tenant that alternates has to answer
// in time for longer and longer.
const leastProof, mostProof = 8, 1024

// Usual is the usual duration of the super cluster's answers. The zero value is
// ready to use.
type Usual struct {
	mu   sync.Mutex
	mean time.Duration
}

// observe adds an answer to the mean.
func (u *Usual) observe(took time.Duration) {
	const weight = 16
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mean += (took - u.mean) / weight
}

// inTime returns the time limit for an answer of a tenant.
func (u *Usual) inTime() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return min(max(slowFactor*u.mean, leastInTime), mostInTime)
}

// Pace detects whether a tenant's apiserver answers slowly. It is a
// [requests.Timer] of the requests that reconciles send: a request that is not
// answered in time makes the tenant slow, while its worker still waits.
type Pace struct {
	super *Usual
	// tell is called when the tenant becomes slow or fast. It must not call the
	// pace.
	tell func(slow bool)

	mu   sync.Mutex
	slow bool
	// inTime counts consecutive answers in time, proof is the number that is
	// required.
	inTime, proof int
}

// New returns the pace of a tenant, compared with the super cluster's; tell is
// called when the tenant becomes slow or fast.
func New(super *Usual, tell func(slow bool)) *Pace {
	return &Pace{super: super, tell: tell, proof: leastProof}
}

// Begin implements requests.Timer.
func (p *Pace) Begin(side string) (end func(answered bool)) {
	if side == requests.Super {
		began := time.Now()
		return func(answered bool) {
			if answered {
				p.super.observe(time.Since(began))
			}
		}
	}
	timer := time.AfterFunc(p.super.inTime(), p.late)
	return func(answered bool) {
		if timer.Stop() && answered {
			p.answered()
		}
	}
}

// late records that a request was not answered in time.
func (p *Pace) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inTime = 0
	if p.slow {
		return
	}
	p.slow, p.proof = true, min(2*p.proof, mostProof)
	p.tell(true)
}

// answered records that a request was answered in time.
func (p *Pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inTime++; p.inTime < p.proof {
		return
	}
	p.inTime = 0
	if p.slow {
		p.slow = false
		p.tell(false)
		return
	}
	p.proof = max(p.proof/2, leastProof)
}
