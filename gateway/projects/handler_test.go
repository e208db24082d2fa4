package projects

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// world is a directory, and a server of it for the user in the header Test-User.
type world struct {
	*Directory

	server  *httptest.Server
	version int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Directory: NewDirectory()}
	handler, err := NewHandler(w.Directory, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		handler.Serve(response, r, &user.DefaultInfo{Name: r.Header.Get("Test-User"), Groups: []string{"all"}})
	}))
	t.Cleanup(func() {
		w.Close()
		w.server.Close()
	})
	return w
}

// virtualCluster returns the next version of a VirtualCluster with an alias and
// users as its members.
func (w *world) virtualCluster(name, alias string, users ...string) *tenancyv1alpha1.VirtualCluster {
	w.version++
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(w.version),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(len(name)), 0)),
		},
		Spec:   tenancyv1alpha1.VirtualClusterSpec{Alias: alias},
		Status: tenancyv1alpha1.VirtualClusterStatus{Phase: "Running", Version: "v1.36.3"},
	}
	for _, each := range users {
		vc.Spec.Members = append(vc.Spec.Members, tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: each})
	}
	return vc
}

func (w *world) open(ctx context.Context, t *testing.T, who, path, accept string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Test-User", who)
	r.Header.Set("Accept", accept)
	response, err := w.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// ask returns the status of a response, and its names: of a list, of rows of a
// table, or of one object.
func (w *world) ask(t *testing.T, who, path, accept string) (int, string) {
	t.Helper()
	response := w.open(t.Context(), t, who, path, accept)
	var body struct {
		Metadata metav1.ObjectMeta              `json:"metadata"`
		Items    []metav1.PartialObjectMetadata `json:"items"`
		Rows     []metav1.TableRow              `json:"rows"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil && response.StatusCode != http.StatusNotAcceptable {
		t.Fatal(err)
	}
	names := []string{}
	for _, item := range body.Items {
		names = append(names, item.Name)
	}
	for _, row := range body.Rows {
		names = append(names, fmt.Sprint(row.Cells[0]))
	}
	if body.Metadata.Name != "" {
		names = append(names, body.Metadata.Name)
	}
	return response.StatusCode, strings.Join(names, ",")
}

const (
	path  = "/apis/tenancy.x-k8s.io/v1alpha1/projects"
	plain = "application/json"
	table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
)

func TestReads(t *testing.T) {
	w := newWorld(t)
	if code, _ := w.ask(t, "jane", path, plain); code != http.StatusServiceUnavailable {
		t.Errorf("a directory that is not complete is listed: %d", code)
	}
	w.Set(w.virtualCluster("red", "shop", "jane"))
	w.Set(w.virtualCluster("blue", "", "jane", "joe"))
	w.Set(w.virtualCluster("green", "shop", "joe")) // younger: it does not have the alias
	w.Set(w.virtualCluster("grey", "grey"))
	w.SetComplete()
	keys := map[string]string{}
	for _, who := range []string{"jane", "joe"} {
		_, keys[who] = w.ask(t, who, path, plain)
	}
	for _, c := range []struct {
		who, path, accept string
		code              int
		want              string
	}{
		{"joe", path, table, http.StatusOK, keys["joe"]},
		{"jack", path, plain, http.StatusOK, ""},
		{"jack", path, table, http.StatusOK, ""},
		{"jane", path + "/shop", plain, http.StatusOK, "shop"},
		{"jane", path + "/shop", table, http.StatusOK, "shop"},
		{"joe", path + "/shop", plain, http.StatusNotFound, ""},
		{"jane", path + "/grey", plain, http.StatusNotFound, ""},
		{"jane", path + "/none", plain, http.StatusNotFound, ""},
		{"jane", path + "?fieldSelector=metadata.name%3Dshop", plain, http.StatusOK, "shop"},
		{"joe", path + "?fieldSelector=metadata.name%3Dshop", plain, http.StatusOK, ""},
		{"jane", path + "?fieldSelector=status.phase%3DRunning", plain, http.StatusBadRequest, ""},
		{"jane", path + "?labelSelector=a%3Db", plain, http.StatusOK, ""},
		{"jane", path + "/shop/status", plain, http.StatusNotFound, ""},
		{"jane", "/apis/tenancy.x-k8s.io/v1alpha1/namespaces/team/projects", plain, http.StatusNotFound, ""},
		{"jane", "/apis/tenancy.x-k8s.io/v1alpha1/virtualclusters", plain, http.StatusNotFound, ""},
		{"jane", "/api/v1/secrets", plain, http.StatusNotFound, ""},
		{"jane", path, "application/vnd.kubernetes.protobuf", http.StatusNotAcceptable, ""},
	} {
		code, got := w.ask(t, c.who, c.path, c.accept)
		if code != c.code || got != c.want {
			t.Errorf("%s %s: got %d %q, want %d %q", c.who, c.path, code, got, c.code, c.want)
		}
	}
	if !strings.HasPrefix(keys["jane"], "shop,") || !strings.Contains(keys["joe"], "-green") || strings.Contains(keys["joe"], "shop") {
		t.Errorf("lists: %v", keys)
	}
}

// TestDiscovery: a client finds the resources and what it can do with them.
func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: w.server.URL})
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil || len(lists) != 1 {
		t.Fatalf("got %v, %v", lists, err)
	}
	var found []string
	for _, each := range lists[0].APIResources {
		found = append(found, fmt.Sprintf("%s %v %s", each.Name, each.Namespaced, strings.Join(each.Verbs, ",")))
	}
	if diff := cmp.Diff([]string{"projects false delete,get,list,watch", "projectrequests false create"}, found); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	response, err := w.server.Client().Post(w.server.URL+path, plain, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a project is created: %d", response.StatusCode)
	}
}

// watching returns the events of a watch, as type and name.
func (w *world) watching(t *testing.T, who, options string) <-chan string {
	t.Helper()
	response := w.open(t.Context(), t, who, path+"?watch=true"+options, plain)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("watch of %s: %d", who, response.StatusCode)
	}
	events := make(chan string, 100)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			var event struct {
				Type   string                       `json:"type"`
				Object metav1.PartialObjectMetadata `json:"object"`
			}
			_ = json.Unmarshal(lines.Bytes(), &event)
			events <- strings.TrimSpace(event.Type + " " + event.Object.Name)
		}
	}()
	return events
}

func next(t *testing.T, events <-chan string) string {
	t.Helper()
	select {
	case event, open := <-events:
		if !open {
			return "END"
		}
		return event
	case <-time.After(time.Minute):
		t.Fatal("no event")
		return ""
	}
}

// TestWatch: each user sees the changes of its own projects. One that is no
// longer a member sees a deletion.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	w.Set(w.virtualCluster("red", "shop", "jane"))
	w.SetComplete()
	since := fmt.Sprintf("&resourceVersion=%d", w.version)
	jane, joe, from := w.watching(t, "jane", ""), w.watching(t, "joe", ""), w.watching(t, "jane", since)
	list := w.watching(t, "jane", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	w.Set(w.virtualCluster("red", "shop", "jane", "joe"))
	w.Set(w.virtualCluster("red", "shop", "joe"))
	w.Set(w.virtualCluster("red", "shop", "joe")) // jane sees no more of it
	w.Set(w.virtualCluster("blue", "", "jane"))
	w.Remove(w.virtualCluster("red", "shop", "joe"))
	w.Set(w.virtualCluster("red2", "end", "jane", "joe"))
	for name, c := range map[string]struct {
		events <-chan string
		want   []string
	}{
		"jane":            {jane, []string{"ADDED shop", "MODIFIED shop", "DELETED shop", "ADDED blue", "ADDED end"}},
		"jane, from then": {from, []string{"MODIFIED shop", "DELETED shop", "ADDED blue", "ADDED end"}},
		"jane, by a list": {list, []string{"ADDED shop", "BOOKMARK", "MODIFIED shop", "DELETED shop", "ADDED blue", "ADDED end"}},
		"joe":             {joe, []string{"ADDED shop", "MODIFIED shop", "MODIFIED shop", "DELETED shop", "ADDED end"}},
	} {
		for _, want := range c.want {
			got := next(t, c.events)
			if strings.HasSuffix(got, "-blue") {
				got = "ADDED blue"
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
	// A change out of order: all begin again.
	w.version = 1
	w.Set(w.virtualCluster("late", "late", "jack"))
	for name, events := range map[string]<-chan string{"jane": jane, "joe": joe, "jane, from then": from, "jane, by a list": list} {
		if got := next(t, events); got != "END" {
			t.Errorf("%s: got %q after a change out of order", name, got)
		}
	}
	if response := w.open(t.Context(), t, "jane", path+"?watch=true"+since, plain); response.StatusCode != http.StatusGone {
		t.Errorf("a watch begins with a version that is not known: %d", response.StatusCode)
	}
}

// TestAliasPassesOn: when the holder of an alias is gone, the next one has it,
// and watches begin again.
func TestAliasPassesOn(t *testing.T) {
	w := newWorld(t)
	w.Set(w.virtualCluster("red", "shop", "jane"))
	w.Set(w.virtualCluster("green", "shop", "joe"))
	w.SetComplete()
	events := w.watching(t, "joe", "")
	if got := next(t, events); !strings.HasSuffix(got, "-green") {
		t.Errorf("got %q", got)
	}
	w.Remove(w.virtualCluster("red", "shop", "jane"))
	if got := next(t, events); got != "END" {
		t.Errorf("got %q", got)
	}
	if code, got := w.ask(t, "joe", path+"/shop", plain); code != http.StatusOK || got != "shop" {
		t.Errorf("got %d %q", code, got)
	}
}

// TestSlowWatch: a client that does not read delays no other client, and has to begin
// again.
func TestSlowWatch(t *testing.T) {
	w := newWorld(t)
	w.SetComplete()
	watching, err := w.Watch(&user.DefaultInfo{Name: "jane"}, watchOptions{selects: selector(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for range pendingEvents + 1 {
		w.Set(w.virtualCluster("red", "shop", "jane"))
	}
	received := 0
	for range watching.ResultChan() {
		received++
	}
	if received != pendingEvents {
		t.Errorf("received %d events", received)
	}
	watching.Stop() // again
}
