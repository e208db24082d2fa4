package hosted

import (
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// Limits limits what a control plane stores and has in flight.
type Limits struct {
	Stored   quota.Limits
	Requests inflight.Limits
	// Expressions is how much work the expressions are that it stores, in those of
	// the usual length; zero means no limit.
	Expressions int64
}

// SetLimits changes the limits of the control plane while it runs. It keeps
// objects that exceed them, but cannot grow.
func (c *ControlPlane) SetLimits(limits Limits) {
	c.ledger.SetLimits(c.spec.Name, limits.Stored)
	c.requests.SetLimits(limits.Requests)
	c.expressions.SetLimit(limits.Expressions)
}

// Consumption is what a control plane takes, beside its limits.
type Consumption struct {
	Limits      quota.Limits
	Stored      quota.Usage
	Rejected    map[quota.Reason]int64
	Requests    inflight.Usage
	Expressions expressions.Usage
}

// Consumption returns what the control plane takes now.
func (c *ControlPlane) Consumption() Consumption {
	limits, stored, rejected := c.ledger.Status(c.spec.Name)
	return Consumption{
		Limits: limits, Stored: stored, Rejected: rejected, Requests: c.requests.Usage(), Expressions: c.expressions.Usage(),
	}
}
