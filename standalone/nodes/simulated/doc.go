// Package simulated gives a super cluster simulated nodes: pods that are
// scheduled to them are Running within milliseconds and gone as soon as they
// are deleted. kwok does the simulation.
package simulated
