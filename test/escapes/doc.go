// Package escapes holds the attacks of a hostile tenant: each spec is one
// attempt to reach beyond the tenant, or to keep others from their share, on
// real apiservers. A tenant is cluster-admin of its control plane; that of an
// External tenant may answer anything.
package escapes
