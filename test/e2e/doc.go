// Package e2e holds the tests with containers: vc-standalone as its users run
// it, with a real node, and tenants whose pods run there.
package e2e
