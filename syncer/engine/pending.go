package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

const (
	// summarizeEvery is how often the pending objects of each tenant are
	// summarized for its VirtualCluster.
	summarizeEvery = 10 * time.Second
	// listedMost is how many pending objects of a tenant are listed.
	listedMost = 500
)

// pendingObjects reports the pending objects of all tenants to admins.
type pendingObjects struct {
	tenants *tenants
}

// summarize reports the pending objects of each tenant at an interval, until ctx
// ends.
func (e *pendingObjects) summarize(ctx context.Context) {
	for pause.For(ctx, summarizeEvery) {
		e.tenants.each(func(s *engagement) {
			if s.Begun.Load() {
				s.Cluster.Pending(s.Pending.Summary(time.Now()))
			}
		})
	}
}

// pendingList is the list of pending objects.
type pendingList struct {
	Tenants []pendingTenant `json:"tenants"`
}

// pendingTenant is a tenant in the list of pending objects.
type pendingTenant struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Paused is set while the tenant's apiserver does not answer.
	Paused bool `json:"paused,omitempty"`
	// Queued is how many objects are due or being reconciled, Pending how many
	// are not synced for now, of which Objects are the oldest.
	Queued  int             `json:"queued"`
	Pending int             `json:"pending"`
	Objects []pendingObject `json:"objects,omitempty"`
}

// pendingObject is an object in the list of pending objects.
type pendingObject struct {
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Outcome   pending.State `json:"outcome"`
	On        string        `json:"on,omitempty"`
	Message   string        `json:"message"`
	Since     time.Time     `json:"since"`
	Until     *time.Time    `json:"until,omitempty"`
}

// ServeHTTP lists the tenants that this syncer serves with their pending
// objects, as JSON; with ?tenant=NAMESPACE/NAME only that one. It shows objects
// of all tenants, so the caller has to authorize the client.
func (e *pendingObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		return
	}
	only, tenants := r.URL.Query().Get("tenant"), []pendingTenant{}
	e.tenants.each(func(s *engagement) {
		if t := s.Identity(); only == "" || only == t.Namespace+"/"+t.Name {
			tenants = append(tenants, listPending(s.Session))
		}
	})
	if only != "" && len(tenants) == 0 {
		http.Error(w, "this replica does not serve such a tenant", http.StatusNotFound)
		return
	}
	slices.SortFunc(tenants, func(a, b pendingTenant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	if err := out.Encode(pendingList{tenants}); err != nil {
		log.FromContext(r.Context()).V(1).Info("Cannot send the pending objects", "cause", err.Error())
	}
}

// listPending returns a tenant's pending objects for the list.
func listPending(s *session.Session) pendingTenant {
	t, objects := s.Identity(), s.Pending.Oldest(time.Now())
	listed := pendingTenant{
		Namespace: t.Namespace, Name: t.Name, Paused: !s.Cluster.Healthy(), Pending: len(objects),
		Queued: s.Queue.LaneLen(t.Key) + s.Queue.InFlight(t.Key),
	}
	for _, o := range objects[:min(len(objects), listedMost)] {
		p := pendingObject{
			Kind: o.Kind, Namespace: o.Key.Namespace, Name: o.Key.Name,
			Outcome: o.State, On: o.On, Message: o.Message, Since: o.Since,
		}
		if !o.Until.IsZero() {
			p.Until = &o.Until
		}
		listed.Objects = append(listed.Objects, p)
	}
	return listed
}
