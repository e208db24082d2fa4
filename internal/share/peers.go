package share

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// peers are the other replicas of a program, by their leases. A lease counts as
// long as it exists; a replica that observes that a lease was not changed for
// its duration deletes it.
type peers struct {
	client  coordination.LeaseInterface
	self    string
	program string
	seen    map[string]sighting
	// listed is when the leases were listed last.
	listed time.Time
	// duration is that of leases which have a shorter one.
	duration time.Duration
}

// sighting is for how long a version of a lease was observed, by the monotonic
// clock of this process: clocks of two machines are never compared.
type sighting struct {
	version string
	lasted  time.Duration
}

// maxLapse bounds how much of the time between two lists counts. While the super
// cluster did not respond, other replicas could not renew their leases either, and
// need time to do so.
const maxLapse = 2 * pollEvery

// list reads the leases of the others from the super cluster, not from a cache,
// and returns their views.
func (p *peers) list(ctx context.Context) (claims, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := p.leases(ctx)
	if err != nil {
		return nil, err
	}
	passed, others, own := p.pass(time.Now()), claims{}, false
	for i := range list.Items {
		l := &list.Items[i]
		switch {
		case l.Name == p.self:
			own = true
		case p.expired(l, passed) && p.remove(ctx, l):
		default:
			others[l.Name] = parseView(l.Annotations[viewAnnotation])
		}
	}
	maps.DeleteFunc(p.seen, func(name string, _ sighting) bool { _, there := others[name]; return !there })
	if !own {
		return nil, errLapsed
	}
	return others, nil
}

// count returns the number of leases of others.
func (p *peers) count(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := p.leases(ctx)
	if err != nil {
		return 0, err
	}
	others := slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool { return l.Name == p.self })
	return len(others), nil
}

// leases reads the leases of all replicas.
func (p *peers) leases(ctx context.Context) (*coordinationv1.LeaseList, error) {
	list, err := p.client.List(ctx, metav1.ListOptions{LabelSelector: ofReplicas + "=" + p.program})
	if err != nil {
		return nil, fmt.Errorf("list the leases of the replicas: %w", err)
	}
	return list, nil
}

// pass records a list, and returns how much time since the one before counts.
func (p *peers) pass(now time.Time) time.Duration {
	passed := min(now.Sub(p.listed), maxLapse)
	p.listed = now
	return passed
}

// expired reports whether a lease was not changed for its duration, of which some
// time has passed since the list before.
func (p *peers) expired(l *coordinationv1.Lease, passed time.Duration) bool {
	last, known := p.seen[l.Name]
	if !known || last.version != l.ResourceVersion {
		p.seen[l.Name] = sighting{version: l.ResourceVersion}
		return false
	}
	last.lasted += passed
	p.seen[l.Name] = last
	patience := p.duration
	if l.Spec.LeaseDurationSeconds != nil {
		patience = max(patience, time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second)
	}
	return last.lasted >= patience
}

// remove deletes exactly the observed version of a lease, and reports whether
// it is gone. A lease that was renewed meanwhile stays.
func (p *peers) remove(ctx context.Context, l *coordinationv1.Lease) bool {
	exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
	switch err := p.client.Delete(ctx, l.Name, exactly); {
	case apierrors.IsNotFound(err):
		return true
	case err != nil:
		log.FromContext(ctx).Error(err, "Cannot delete an expired lease", "lease", l.Name)
		return false
	}
	log.FromContext(ctx).Info("Deleted the expired lease of another replica; redistributing its tenants", "lease", l.Name)
	return true
}
