package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

const (
	// sweepInterval is the interval of looking for data that belongs to no
	// HostedControlPlane.
	sweepInterval = time.Hour
	// sweepTimeout limits that.
	sweepTimeout = 30 * time.Second
	// maxOrphans is how many names the status lists.
	maxOrphans = 20
	// templateLife is how long the templates of hosts exist at most, which are
	// control planes for a moment.
	templateLife = 10 * time.Minute
)

// sweeps remembers when stores were swept last, and since when names have been
// known of which no control plane can exist.
type sweeps struct {
	mu   sync.Mutex
	last map[string]sweep // by store
}

type sweep struct {
	at         time.Time
	generation int64
	templates  map[string]time.Time
}

// due reports whether a store is to be swept.
func (s *sweeps) due(object *tenancyv1alpha1.ControlPlaneStore, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.last[object.Name]
	return !ok || last.generation != object.Generation || now.Sub(last.at) >= sweepInterval
}

// settled returns the names that are no templates in use, and records a sweep.
func (s *sweeps) settled(object *tenancyv1alpha1.ControlPlaneStore, names []string, now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]sweep{}
	}
	before, templates := s.last[object.Name].templates, map[string]time.Time{}
	settled := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if !isTemplate(name) {
			return false
		}
		since, known := before[name]
		if !known {
			since = now
		}
		templates[name] = since
		return now.Sub(since) < templateLife
	})
	s.last[object.Name] = sweep{at: now, generation: object.Generation, templates: templates}
	return settled
}

// isTemplate reports whether a name is none that a namespace can have.
func isTemplate(name string) bool { return strings.HasPrefix(name, ".") }

// sweep deletes the orphans that the spec of a store names, and reports the
// others.
func (s *storeController) sweep(
	ctx context.Context, object *tenancyv1alpha1.ControlPlaneStore, in *store,
) (*tenancyv1alpha1.StoreOrphans, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	names, err := in.host.StoredNames(ctx)
	if err != nil {
		return nil, err
	}
	found := &tenancyv1alpha1.StoreOrphans{}
	now := time.Now()
	for _, name := range s.sweeps.settled(object, names, now) {
		orphan, err := s.isOrphan(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case !orphan:
			continue
		}
		if slices.Contains(object.Spec.DeleteOrphans, name) {
			stillOrphan := func(ctx context.Context) (bool, error) { return s.isOrphanNow(ctx, name) }
			if err := in.host.DeleteOrphan(ctx, name, stillOrphan); err != nil {
				return nil, fmt.Errorf("delete the data of %s: %w", name, err)
			}
			s.log.Info("Deleted data that belongs to no HostedControlPlane", "store", object.Name, "name", name)
			continue
		}
		bytes, err := in.host.StoredBytes(ctx, name)
		if err != nil {
			return nil, err
		}
		found.Count++
		found.Bytes += bytes
		if len(found.Names) < maxOrphans {
			found.Names = append(found.Names, name)
		}
	}
	if found.Count == 0 {
		return nil, nil
	}
	found.CheckTime = metav1.NewTime(now).Rfc3339Copy()
	return found, nil
}

// isOrphan reports whether no control plane has a name. It reads the cache first,
// which has nearly all of them.
func (s *storeController) isOrphan(ctx context.Context, name string) (bool, error) {
	if isTemplate(name) {
		return true, nil
	}
	err := s.Get(ctx, planeKey(name), &tenancyv1alpha1.HostedControlPlane{})
	if apierrors.IsNotFound(err) {
		return s.isOrphanNow(ctx, name)
	}
	return false, client.IgnoreNotFound(err)
}

// isOrphanNow does so without the cache.
func (s *storeController) isOrphanNow(ctx context.Context, name string) (bool, error) {
	if isTemplate(name) {
		return true, nil
	}
	err := s.live.Get(ctx, planeKey(name), &tenancyv1alpha1.HostedControlPlane{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

func planeKey(controlPlane string) types.NamespacedName {
	return types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneName}
}
