package sharedcrds

// Policy says which CRD a tenant uses if it and the super cluster have one of
// the same name.
type Policy string

// Policies of a tenant. The zero value, and every other, is LocalCRDFirst.
const (
	NeverUseSystemCRDUnlessForced Policy = "NeverUseSystemCRDUnlessForced"
	SystemCRDFirst                Policy = "SystemCRDFirst"
	LocalCRDFirst                 Policy = "LocalCRDFirst"
)

// System is what a lookup needs to know of the super cluster's CRD. The zero
// value is that of a CRD that does not exist.
type System struct {
	// InRange reports whether the tenant is in the applicable range, and Forced
	// whether the CRD overrides the tenant's.
	InRange, Forced bool
}

// Answer says whose CRD a tenant uses.
type Answer int

// Answers of a lookup.
const (
	UseNone Answer = iota
	UseSystem
	UseLocal
)

// Lookup returns whose CRD of a name a tenant uses: the matching of CRDs in
// Arktos. local reports whether the tenant has one of its own.
func Lookup(system System, policy Policy, local bool) Answer {
	switch {
	case system.Forced:
		return UseSystem
	case local && (policy != SystemCRDFirst || !system.InRange):
		return UseLocal
	case system.InRange && policy != NeverUseSystemCRDUnlessForced:
		return UseSystem
	}
	return UseNone
}
