// Package integration tests the whole path: real apiservers for the super
// cluster and every tenant, in a vc-standalone of their own, and the syncer in
// this process.
package integration
