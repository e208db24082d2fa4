// Package simulated gives a super cluster nodes that only pretend: pods that are scheduled to them are Running within
// milliseconds and gone as soon as they are deleted. The pretending is kwok's.
package simulated
