package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/syncer/limits"
)

// DefaultLimits returns the default limits for the number of a tenant's copies:
// more than most tenants need, and low enough that one tenant cannot exhaust
// shared resources, such as the 2,768 node ports.
func DefaultLimits() limits.Limits {
	return limits.Limits{
		"namespaces":             200,
		"pods":                   5000,
		"services":               1000,
		"services.nodeports":     50,
		"services.loadbalancers": 10,
		"persistentvolumeclaims": 500,
		limits.AnyResource:       5000,
	}
}

// effectiveLimits returns the default limits, overridden by the given ones.
func effectiveLimits(given map[string]int64) limits.Limits {
	limits := DefaultLimits()
	maps.Copy(limits, given)
	return limits
}

func describeLimits(limits limits.Limits) string {
	texts := make([]string, 0, len(limits))
	for _, resource := range slices.Sorted(maps.Keys(limits)) {
		texts = append(texts, fmt.Sprintf("%s=%d", resource, limits[resource]))
	}
	return strings.Join(texts, ",")
}
