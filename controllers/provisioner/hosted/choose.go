package hosted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// Capacity of a store whose spec has none.
const (
	defaultControlPlanes = 5000
	defaultStorage       = 8 << 30
)

// mostUsed is the percentage of a store's storage beyond which no further
// control planes are placed in it: those in it grow.
const mostUsed = 80

// maxNamed is how many stores a message names.
const maxNamed = 3

// unchecked is the obstacle of a store that vc-host has not reported on.
const unchecked = "was not checked by vc-host yet"

// use is how much of a store is used.
type use struct {
	store                string
	controlPlanes, bytes float64 // parts of the capacity
}

// choose returns the store for a new control plane: of those that take one, the
// one with the least part of its capacity in use. placed is the number of control
// planes by store. If none takes one, it says what is waited for, or fails.
func choose(stores []tenancyv1alpha1.ControlPlaneStore, placed map[string]int64) (store, waiting string, err error) {
	var free []use
	var obstacles []string
	for i := range stores {
		s := &stores[i]
		switch why := obstacle(s, placed[s.Name]); why {
		case "":
			free = append(free, useOf(s, placed[s.Name]))
		case unchecked:
			waiting = fmt.Sprintf("Waiting for ControlPlaneStore %s, which %s", s.Name, why)
		default:
			obstacles = append(obstacles, s.Name+" "+why)
		}
	}
	switch {
	case len(free) > 0:
		return slices.MinFunc(free, compare).store, "", nil
	case waiting != "":
		return "", waiting, nil
	case len(stores) == 0:
		return "", "", provisioner.Failf(tenancyv1alpha1.ReasonNoStore,
			"there is no ControlPlaneStore for the data of the control plane: create one")
	default:
		return "", "", provisioner.Failf(tenancyv1alpha1.ReasonNoStore,
			"no ControlPlaneStore takes the data of the control plane (%s): create another one, or change these", describe(obstacles))
	}
}

// obstacle returns the reason for which no further control planes are placed in
// a store; empty if they are.
func obstacle(s *tenancyv1alpha1.ControlPlaneStore, placed int64) string {
	controlPlanes, storage := capacity(s.Spec.Capacity)
	healthy := meta.FindStatusCondition(s.Status.Conditions, tenancyv1alpha1.ConditionStoreHealthy)
	switch {
	case !s.DeletionTimestamp.IsZero():
		return "is being deleted"
	case s.Spec.Unschedulable:
		return "is unschedulable"
	case placed >= controlPlanes:
		return fmt.Sprintf("has %d control planes, and takes %d", placed, controlPlanes)
	case s.Status.Bytes > storage/100*mostUsed:
		return fmt.Sprintf("has more than %d %% of its storage in use", mostUsed)
	case healthy == nil:
		return unchecked
	case healthy.Status != metav1.ConditionTrue:
		return "is not healthy: " + healthy.Reason
	default:
		return ""
	}
}

// capacity returns how many control planes and bytes a store takes.
func capacity(c tenancyv1alpha1.StoreCapacity) (controlPlanes, storage int64) {
	controlPlanes, storage = defaultControlPlanes, defaultStorage
	if c.ControlPlanes != nil {
		controlPlanes = int64(*c.ControlPlanes)
	}
	if c.Storage != nil {
		storage = c.Storage.Value()
	}
	return controlPlanes, storage
}

// useOf returns how much of a store is used.
func useOf(s *tenancyv1alpha1.ControlPlaneStore, placed int64) use {
	controlPlanes, storage := capacity(s.Spec.Capacity)
	return use{
		store:         s.Name,
		controlPlanes: float64(placed) / float64(controlPlanes),
		bytes:         float64(s.Status.Bytes) / float64(storage),
	}
}

// compare orders stores by the control planes in them, then by the bytes.
func compare(a, b use) int {
	return cmp.Or(cmp.Compare(a.controlPlanes, b.controlPlanes), cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.store, b.store))
}

// describe lists the first few obstacles, in a fixed order.
func describe(obstacles []string) string {
	slices.Sort(obstacles)
	if more := len(obstacles) - maxNamed; more > 0 {
		obstacles = append(slices.Clone(obstacles[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(obstacles, "; ")
}
