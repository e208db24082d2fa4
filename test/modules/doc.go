// Package modules checks that the project's Go modules belong together.
package modules
