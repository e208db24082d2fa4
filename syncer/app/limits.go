package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// DefaultLimits are how many copies a tenant may have where nobody has said otherwise: more than most tenants need, and few enough for
// one tenant not to take what all share, such as the 2,768 ports of all nodes.
func DefaultLimits() engine.Limits {
	return engine.Limits{
		"namespaces":             200,
		"pods":                   5000,
		"services":               1000,
		"services.nodeports":     50,
		"services.loadbalancers": 10,
		"persistentvolumeclaims": 500,
		engine.AnyResource:       5000,
	}
}

// effectiveLimits returns the default limits with those that were given in their place.
func effectiveLimits(given map[string]int64) engine.Limits {
	limits := DefaultLimits()
	maps.Copy(limits, given)
	return limits
}

func describeLimits(limits engine.Limits) string {
	texts := make([]string, 0, len(limits))
	for _, resource := range slices.Sorted(maps.Keys(limits)) {
		texts = append(texts, fmt.Sprintf("%s=%d", resource, limits[resource]))
	}
	return strings.Join(texts, ",")
}
