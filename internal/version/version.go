// Package version tells which build of VirtualCluster is running.
package version

// version is set by the linker (see the Makefile); a plain go build leaves it as it is.
var version = "dev"

// String is the version of this build, such as v0.1.0 or v0.1.0-12-gabc1234.
func String() string { return version }
