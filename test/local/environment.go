package local

import "os"

// Environment returns the environment for a program that specs start, with more
// variables. It has no mutation detector, which compares all objects of all informers
// each second: most of those are of Kubernetes' own controllers, and the copies of
// CoreDNS's objects have empty lists in place of none.
func Environment(more ...string) []string {
	return append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=false"), more...)
}
