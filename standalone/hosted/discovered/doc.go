// Package discovered tells controllers which APIs their control plane serves.
// Control planes that serve equal APIs have one copy of what was discovered, and
// one REST mapper.
//
// Nothing leads from a tenant to the APIs of another: a [Client] reads the
// documents from its own control plane, and copies are found by the hash of all
// that was read. They never change.
package discovered
