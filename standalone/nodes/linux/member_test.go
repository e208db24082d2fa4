package linux

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/internal/apitest"
)

const worker = "/api/v1/nodes/" + Name

func TestIsReady(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, heartbeat time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: metav1.NewTime(heartbeat)}
	}
	before, after := start.Add(-time.Second), start.Add(time.Second)
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"it has reported nothing":                 {nil, false},
		"it has reported something else":          {[]corev1.NodeCondition{condition(corev1.NodeDiskPressure, corev1.ConditionTrue, after)}, false},
		"it is ready":                             {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, after)}, true},
		"it was ready before the last start":      {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, before)}, false},
		"it was ready at the moment of the start": {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, start)}, false},
		"it is not ready":                         {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse, after)}, false},
		"it is not known to be ready":             {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionUnknown, after)}, false},
		"ready is not its first condition": {[]corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, after), condition(corev1.NodeReady, corev1.ConditionTrue, after),
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: c.conditions}}
			if got := isReady(node, start); got != c.want {
				t.Errorf("ready: %v, want %v", got, c.want)
			}
		})
	}
}

// TestAwaitReady: it also waits until the node has no taints, and
// returns an error when waiting makes no sense.
func TestAwaitReady(t *testing.T) {
	ready := func(taints ...corev1.Taint) apitest.Answer {
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
		node.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()},
		}
		return apitest.Answer{Object: node}
	}
	notFound, notReady := apitest.Answer{Status: http.StatusNotFound}, apitest.Answer{Object: &corev1.Node{}}
	var stop context.CancelFunc
	canceled := apitest.Answer{Status: http.StatusNotFound, Do: func() { stop() }}
	for name, c := range map[string]struct {
		answers []apitest.Answer
		gets    int
		want    string // part of the error; empty for none
	}{
		"it is ready":                 {[]apitest.Answer{ready()}, 1, ""},
		"it becomes ready in the end": {[]apitest.Answer{notFound, notReady, ready(corev1.Taint{Key: "new"}), ready()}, 4, ""},
		"nodes must not be read":      {[]apitest.Answer{notReady, {Status: http.StatusForbidden}}, 2, "wait for node worker: "},
		"told to stop":                {[]apitest.Answer{notFound, canceled}, 2, "wait for node worker: "},
	} {
		t.Run(name, func(t *testing.T) {
			var ctx context.Context
			ctx, stop = context.WithCancel(t.Context())
			defer stop()
			server, config := apitest.Serve(t, map[string][]apitest.Answer{"GET " + worker: c.answers})
			err := AwaitReady(ctx, config, time.Now().Add(-time.Minute))
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if gets := len(server.Requests(http.MethodGet)); gets != c.gets {
				t.Errorf("%d requests, want %d", gets, c.gets)
			}
		})
	}
}

// TestForget: a node that is gone already is no error.
func TestForget(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK: "", http.StatusNotFound: "", http.StatusForbidden: "node worker: ",
	} {
		server, config := apitest.Serve(t, map[string][]apitest.Answer{"DELETE " + worker: {{Status: status, Object: &metav1.Status{}}}})
		err := Forget(t.Context(), config)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("answered with %d: got %v, want %q", status, err, want)
		}
		if got := server.Requests(http.MethodDelete); len(got) != 1 {
			t.Errorf("the requests are %v", got)
		}
	}
}

// TestAllow: the node's programs may read what policies depend on and change
// nothing, and an error in between is not passed over.
func TestAllow(t *testing.T) {
	const role = "PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/" + policiesUser
	const binding = "PATCH /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + policiesUser
	ok, forbidden := []apitest.Answer{{Object: struct{}{}}}, []apitest.Answer{{Status: http.StatusForbidden}}
	for name, c := range map[string]struct {
		answers map[string][]apitest.Answer
		want    []string
		fails   bool
	}{
		"all is well":               {map[string][]apitest.Answer{role: ok, binding: ok}, []string{role, binding}, false},
		"the role is refused":       {map[string][]apitest.Answer{role: forbidden, binding: ok}, []string{role}, true},
		"its assignment is refused": {map[string][]apitest.Answer{role: ok, binding: forbidden}, []string{role, binding}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, config := apitest.Serve(t, c.answers)
			err := Allow(t.Context(), config)
			if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "NetworkPolicies: ") {
				t.Errorf("got %v", err)
			}
			if got := server.Requests(http.MethodPatch); !slices.Equal(got, c.want) {
				t.Errorf("the requests are %v, want %v", got, c.want)
			}
			if body := server.Body(role); strings.Contains(body, "create") || !strings.Contains(body, `"verbs":["get","list","watch"]`) {
				t.Errorf("the role is %s", body)
			}
		})
	}
}

// TestClusterThatIsNone: a wrong address is found before anything waits for it.
func TestClusterThatIsNone(t *testing.T) {
	wrong := &rest.Config{Host: "not a URL"}
	for name, err := range map[string]error{
		"await": AwaitReady(t.Context(), wrong, time.Now()), "forget": Forget(t.Context(), wrong), "allow": Allow(t.Context(), wrong),
	} {
		if err == nil || !strings.Contains(err.Error(), "not a URL") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
