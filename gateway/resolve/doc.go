// Package resolve finds the tenant that a request addresses. It does no I/O,
// and grants nothing: the authorizer of the tenant decides about the request.
package resolve
