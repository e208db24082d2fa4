// Package routes holds the tests of routes with containers: vc-standalone with
// a real node, on which Traefik serves the Gateway that the platform offers,
// and tenants whose pods answer there.
package routes
