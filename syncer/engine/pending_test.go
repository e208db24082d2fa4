package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

func (s *still) Pending(summary string) { s.summaries = append(s.summaries, summary) }

// listing returns an engine with one tenant.
func listing() (*Engine, *engagement) {
	s, _, _ := concluding()
	return engaging(s), s
}

func get(t *testing.T, e *Engine, path string) (int, []pendingTenant) {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	var list pendingList
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, list.Tenants
}

func TestListOfPendingObjects(t *testing.T) {
	e, s := listing()
	now, until := time.Now().UTC().Add(-time.Minute), time.Unix(200, 0).UTC()
	waiting := pending.OutcomeOf(&pending.WaitingError{On: "a deletion", Until: until})
	s.Pending.Record("ConfigMap", client.ObjectKeyFromObject(kindstest.Settings()), waiting, now)
	s.Pending.Record("Namespace", client.ObjectKey{Name: "prod"}, pending.OutcomeOf(errors.New("no answer")), now.Add(time.Second))
	tenant := kindstest.Blue()
	want := []pendingTenant{{
		Namespace: tenant.Namespace, Name: tenant.Name, Pending: 2, Objects: []pendingObject{
			{
				Kind: "ConfigMap", Namespace: "default", Name: "settings", Outcome: "Waiting", On: "a deletion",
				Message: "waiting for a deletion", Since: now, Until: &until,
			},
			{Kind: "Namespace", Name: "prod", Outcome: "Failed", Message: "no answer", Since: now.Add(time.Second)},
		},
	}}
	for _, path := range []string{"/", "/?tenant=" + tenant.Namespace + "/" + tenant.Name} {
		code, got := get(t, e, path)
		if diff := cmp.Diff(want, got); code != http.StatusOK || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", path, code, diff)
		}
	}
	if code, _ := get(t, e, "/?tenant=team/other"); code != http.StatusNotFound {
		t.Errorf("a tenant that is not served: %d", code)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestTheListIsBounded: a tenant can have any number of pending objects.
func TestTheListIsBounded(t *testing.T) {
	e, s := listing()
	for i := range listedMost + 7 {
		s.Pending.Record("ConfigMap", client.ObjectKey{Namespace: "default", Name: fmt.Sprint(i)}, pending.OutcomeOf(pending.ErrInDoubt), time.Unix(int64(i), 0))
	}
	_, got := get(t, e, "/")
	if got[0].Pending != listedMost+7 || len(got[0].Objects) != listedMost || got[0].Objects[0].Name != "0" {
		t.Errorf("%d of %d objects are listed, from %s", len(got[0].Objects), got[0].Pending, got[0].Objects[0].Name)
	}
}

func TestSummaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := listing()
		cluster := s.Cluster.(*still)
		go e.summarize(t.Context())
		s.Pending.Record("ConfigMap", client.ObjectKey{Namespace: "default", Name: "a"}, pending.OutcomeOf(errors.New("no")), time.Now())
		time.Sleep(summarizeEvery + time.Second)
		s.Pending.Record("ConfigMap", client.ObjectKey{Namespace: "default", Name: "a"}, pending.OutcomeOf(nil), time.Now())
		time.Sleep(summarizeEvery)
		s.Begun.Store(false) // nothing is known of the tenant's objects
		time.Sleep(summarizeEvery)
		synctest.Wait()
		if diff := cmp.Diff([]string{"1 object pending, oldest ConfigMap default/a: Failed: no", ""}, cluster.summaries); diff != "" {
			t.Errorf("summaries (-want +got):\n%s", diff)
		}
	})
}
