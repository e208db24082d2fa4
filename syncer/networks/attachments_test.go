package networks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// desk is a provider that answers about pods by their names.
type desk struct {
	cloud

	answers map[string]answer
	// slow is how long a call takes.
	slow  time.Duration
	calls atomic.Int32
}

func (d *desk) PreparePod(_ context.Context, p network.Pod) (network.Attachment, error) {
	d.calls.Add(1)
	time.Sleep(d.slow)
	return d.answers[p.Name].attachment, d.answers[p.Name].err
}

func (d *desk) ReleasePod(_ context.Context, p network.Pod) (bool, error) {
	d.calls.Add(1)
	return d.answers[p.Name].gone, d.answers[p.Name].err
}

// copyOf returns a copy that waits for its provider.
func copyOf(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "red-shop", Name: name, UID: types.UID("uid-" + name), Finalizers: []string{"example.com/other", networkv1.Finalizer},
			Labels: map[string]string{networkv1.Label: "net-1"},
			Annotations: map[string]string{
				names.Cluster: "red", names.Namespace: "shop", names.VCName: "vc", names.VCNamespace: "team",
				names.NetworkRecord:             `{"uid":"net-uid","type":"vpc","vpcID":"vpc-1","tenant":"vc-uid"}`,
				networkv1.NICAnnotation:         `{"ip":"192.0.2.7"}`,
				networkv1.ReadinessAnnotation:   "false",
				"example.com/of-the-super-side": "stays",
			},
		},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/quota"}, {Name: networkv1.ReadinessGate}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated},
		}},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// beingDeleted makes a copy one that is being deleted.
func beingDeleted(node string, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
		p.Spec.NodeName, p.Spec.SchedulingGates = node, nil
	}
}

func inPodPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Spec.SchedulingGates = phase, nil }
}

func TestMethodFor(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"new":                       {copyOf("web"), prepareMethod},
		"prepared":                  {copyOf("web", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }), ""},
		"of a flat network":         {copyOf("web", func(p *corev1.Pod) { p.Finalizers = nil }), ""},
		"deleted before it began":   {copyOf("web", beingDeleted("", 0)), releaseMethod},
		"deleted, and not ended":    {copyOf("web", beingDeleted("node-1", 30)), ""},
		"deleted, and ended":        {copyOf("web", beingDeleted("node-1", 0)), releaseMethod},
		"completed":                 {copyOf("web", inPodPhase(corev1.PodSucceeded)), releaseMethod},
		"failed":                    {copyOf("web", inPodPhase(corev1.PodFailed)), releaseMethod},
		"running":                   {copyOf("web", inPodPhase(corev1.PodRunning)), ""},
		"failed with its own gates": {copyOf("web", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), releaseMethod},
	} {
		if got := methodFor(tc.pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAttached(t *testing.T) {
	got, err := attached(copyOf("web"))
	want := network.Pod{
		Network: network.Network{
			Tenant: plugins.Tenant{Key: "red", Name: "vc", Namespace: "team", UID: "vc-uid"},
			Name:   "net-1", UID: "net-uid", Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: "vpc-1"},
		},
		Namespace: "shop", Name: "web", Copy: types.NamespacedName{Namespace: "red-shop", Name: "web"}, UID: "uid-web",
		NIC: network.NIC{IP: "192.0.2.7"},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, got %+v, want %+v", err, got, want)
	}
	for _, key := range []string{names.NetworkRecord, networkv1.NICAnnotation} {
		if _, err := attached(copyOf("web", func(p *corev1.Pod) { p.Annotations[key] = "no JSON" })); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without a good annotation %s: %v", key, err)
		}
	}
}

// attending returns the attachments of copies, and the provider of their network.
func attending(t *testing.T, answers map[string]answer, pods ...client.Object) (*Attachments, *desk) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{answers: answers}
	providers, err := NewProviders(ProviderOptions{Logger: logr.Discard(), Metrics: metrics},
		network.Registration{Type: "vpc", New: func(network.Environment) (network.Provider, error) { return d, nil }})
	if err != nil {
		t.Fatal(err)
	}
	super := fake.NewClientBuilder().WithObjects(pods...).WithStatusSubresource(&corev1.Pod{}).Build()
	return &Attachments{
		Providers: providers, Client: super, Interval: time.Minute, Logger: logr.Discard(), lanes: map[laneKey]*lane{},
		Serves: func(vc types.NamespacedName) bool { return vc == types.NamespacedName{Namespace: "team", Name: "vc"} },
	}, d
}

func TestHandle(t *testing.T) {
	readyFor := answer{attachment: network.Attachment{Ready: true, CNIArgs: "ip=192.0.2.7"}}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		answer answer
		again  bool
		// want is what the copy has then: its gates, finalizers, arguments and
		// message.
		want string
	}{
		"prepared":        {copyOf("web"), readyFor, false, "[example.com/quota] [example.com/other arktos.futurewei.com/network] true ip=192.0.2.7 "},
		"without args":    {copyOf("web"), answer{attachment: network.Attachment{Ready: true}}, false, "[example.com/quota] [example.com/other arktos.futurewei.com/network] true  "},
		"under way":       {copyOf("web"), answer{attachment: network.Attachment{Message: "a port"}}, true, held + "the network is being prepared: a port"},
		"rejected":        {copyOf("web"), answer{err: plugins.Reject("192.0.2.7 is taken")}, true, held + "the network rejects the pod: 192.0.2.7 is taken"},
		"an error":        {copyOf("web"), answer{err: errors.New("no cloud")}, true, held + waitingFor(answer{err: errHangs})},
		"args too long":   {copyOf("web"), answer{attachment: network.Attachment{Ready: true, CNIArgs: strings.Repeat("x", maxArgs+1)}}, true, held + waitingFor(answer{err: errHangs})},
		"released":        {copyOf("web", inPodPhase(corev1.PodFailed)), answer{gone: true}, false, "[] [example.com/other] false  "},
		"not released":    {copyOf("web", inPodPhase(corev1.PodFailed)), answer{}, true, "[] [example.com/other arktos.futurewei.com/network] false  "},
		"no longer there": {copyOf("db"), readyFor, false, ""},
		"another replica": {copyOf("web", func(p *corev1.Pod) { p.Annotations[names.VCName] = "other" }), readyFor, true, held},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := attending(t, map[string]answer{"web": tc.answer}, tc.pod)
				in := laneOf(tc.pod)
				again := a.handle(t.Context(), in, client.ObjectKey{Namespace: "red-shop", Name: "web"}, a.newCall(in))
				if again >= 0 != tc.again {
					t.Errorf("it is handled again after %s", again)
				}
				if got := summary(t, a.Client); got != tc.want {
					t.Errorf("the copy has %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestNothingIsLostBetweenTwoSteps: a syncer that ends after the provider has
// answered, and before the copy is written, begins again with the same pod.
func TestNothingIsLostBetweenTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]answer{"web": {attachment: network.Attachment{Ready: true, CNIArgs: "ip=192.0.2.7"}, gone: true}}
		for _, pod := range []*corev1.Pod{copyOf("web"), copyOf("web", inPodPhase(corev1.PodFailed))} {
			a, d := attending(t, answers, pod)
			super := a.Client
			writes := 0
			a.Client = interceptor.NewClient(super.(client.WithWatch), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					writes++
					return errors.New("the syncer ends")
				},
			})
			key, in := client.ObjectKeyFromObject(pod), laneOf(pod)
			c := a.newCall(in)
			first, second := a.handle(t.Context(), in, key, c), a.handle(t.Context(), in, key, c)
			if d.calls.Load() != 1 || writes != 2 || first < 0 || second <= first {
				t.Errorf("%d calls and %d writes, repeated after %s and %s: want one call, and growing pauses", d.calls.Load(), writes, first, second)
			}
			a.Client = super
			if again := a.handle(t.Context(), in, key, a.newCall(in)); again >= 0 || d.calls.Load() != 2 || summary(t, super) == held {
				t.Errorf("after a restart: %d calls, handled again after %s", d.calls.Load(), again)
			}
		}
	})
}

// held is what a copy has that is held back.
const held = "[example.com/quota arktos.futurewei.com/network-readiness] [example.com/other arktos.futurewei.com/network] false  "

// summary returns what the copy of pod web has.
func summary(t *testing.T, c client.Client) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "red-shop", Name: "web"}, pod); err != nil {
		return ""
	}
	gates := []string{}
	for _, g := range pod.Spec.SchedulingGates {
		gates = append(gates, g.Name)
	}
	notes := pod.Annotations
	return fmt.Sprintf("%v %v %s %s %s", gates, pod.Finalizers, notes[networkv1.ReadinessAnnotation], notes[networkv1.CNIArgsAnnotation],
		pod.Status.Conditions[0].Message)
}

// TestManyPodsOfANetworkThatPreparesNone: they cost a bounded number of calls, and
// a pod of another network does not wait for them.
func TestManyPodsOfANetworkThatPreparesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10000
		pods := make([]client.Object, 0, many+1)
		for i := range many {
			pods = append(pods, copyOf(fmt.Sprintf("web-%d", i)))
		}
		other := copyOf("other", func(p *corev1.Pod) { p.Labels = map[string]string{networkv1.Label: "net-2"} })
		pods = append(pods, other)
		a, d := attending(t, map[string]answer{"other": {attachment: network.Attachment{Ready: true}}}, pods...)
		d.slow = time.Second
		ctx, stop := context.WithCancel(t.Context())
		for _, pod := range pods {
			a.add(ctx, pod)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		found := &corev1.Pod{}
		if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(other), found); err != nil || len(found.Spec.SchedulingGates) != 1 {
			t.Errorf("the pod of another network is not prepared: %v, %v", err, found.Spec.SchedulingGates)
		}
		if most := 3 * (laneWorkers + 1); int(d.calls.Load()) > most {
			t.Errorf("%d calls in 2 s, want at most %d", d.calls.Load(), most)
		}
		if n := len(a.lanes[laneOf(copyOf("web-0"))].items); n != many {
			t.Errorf("%d pods wait, want %d", n, many)
		}
		stop()
		time.Sleep(time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.lanes) != 0 {
			t.Errorf("the lanes %v are left", a.lanes)
		}
	})
}
