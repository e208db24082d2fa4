package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// leases checks whether replicas of the components renew their Leases.
func leases(ctx context.Context, s *Super) Result {
	drift, err := s.drift(ctx)
	if err != nil {
		return unread(err)
	}
	var dead []string
	for _, component := range []string{installation.Manager, installation.Syncer, installation.Host} {
		if _, err := (workload{name: component}).read(ctx, s); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return unread(err)
		}
		all, err := installation.Leases(ctx, s.Client, s.Installation, component)
		if err != nil {
			return unread(err)
		}
		if !slices.ContainsFunc(all, func(l coordinationv1.Lease) bool { return isHeld(&l, time.Now().Add(drift)) }) {
			dead = append(dead, component)
		}
	}
	return leasesVerdict(s.Installation, dead)
}

// isHeld reports whether a replica renews a Lease.
func isHeld(l *coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(l.Spec.HolderIdentity, "") == "" || l.Spec.RenewTime == nil {
		return false
	}
	lasts := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	return now.Before(l.Spec.RenewTime.Add(lasts))
}

// leasesVerdict judges by the components of which no replica holds a Lease.
func leasesVerdict(namespace string, dead []string) Result {
	if len(dead) == 0 {
		return ok("replicas of all components hold their Leases")
	}
	return failed(fmt.Sprintf("See its log: kubectl logs -n %s deployment/%s", namespace, dead[0]),
		"no replica holds a Lease, so that none works: %s", enumerate(dead))
}
