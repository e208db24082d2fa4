package external

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func tenantOf(uid string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "tenants", UID: types.UID(uid)}}
}

// says makes an apiserver that takes a second to answer with a version, and counts.
func says(version *atomic.Value, asked *atomic.Int32) func(context.Context, question) *answer {
	return func(ctx context.Context, q question) *answer {
		asked.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		v, _ := version.Load().(string)
		return &answer{of: q, version: v}
	}
}

// bench runs a prober in a bubble with a clock of its own and collects the events.
func bench(t *testing.T, ask func(context.Context, question) *answer, test func(p *prober, events *atomic.Int32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, events, done := newProber(ask), &atomic.Int32{}, make(chan struct{})
		go func() {
			defer close(done)
			_ = p.run(ctx)
		}()
		go func() {
			for {
				select {
				case <-p.events:
					events.Add(1)
				case <-ctx.Done():
					return
				}
			}
		}()
		test(p, events)
		cancel()
		<-done
	})
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestProber(t *testing.T) {
	var version atomic.Value
	var asked atomic.Int32
	version.Store("v1")
	red, old, renewed := tenantOf("red"), question{kubeconfig: []byte("old")}, question{kubeconfig: []byte("renewed")}
	bench(t, says(&version, &asked), func(p *prober, events *atomic.Int32) {
		expect := func(step string, q question, wantVersion string, wantAsked, wantEvents int32) {
			t.Helper()
			got := ""
			if a := p.look(red, q); a != nil {
				got = a.version
			}
			synctest.Wait()
			if got != wantVersion || asked.Load() != wantAsked || events.Load() != wantEvents {
				t.Errorf("%s: got %q, asked %d, events %d; want %q, %d, %d",
					step, got, asked.Load(), events.Load(), wantVersion, wantAsked, wantEvents)
			}
		}
		expect("first", old, "", 1, 0)
		expect("while it is on its way", old, "", 1, 0)
		later(2 * time.Second)
		expect("answered", old, "v1", 1, 1)
		later(fresh)
		expect("asked again when the answer is old", old, "v1", 2, 1)
		later(2 * time.Second)
		expect("the same answer is no news", old, "v1", 2, 1)
		version.Store("v2")
		expect("another kubeconfig is tried at once, the answer before stands", renewed, "v1", 3, 1)
		later(2 * time.Second)
		expect("the new answer", renewed, "v2", 3, 2)
		p.forget(red.UID)
		expect("forgotten", renewed, "", 4, 2)
		p.forget(red.UID)
		later(2 * time.Second)
		if len(p.tenants) != 0 || events.Load() != 2 {
			t.Errorf("an answer brought back what was forgotten: %d tenants, %d events", len(p.tenants), events.Load())
		}
	})
}

// TestHungApiserversHoldUpNobody: looks return at once, and the number of
// questions on their way is bounded.
func TestHungApiserversHoldUpNobody(t *testing.T) {
	var asking, most atomic.Int32
	hang := func(ctx context.Context, q question) *answer {
		most.Store(max(most.Load(), asking.Add(1)))
		defer asking.Add(-1)
		select {
		case <-time.After(patience):
		case <-ctx.Done():
		}
		return &answer{of: q, failure: &provisioner.Failure{Reason: tenancyv1alpha1.ReasonUnreachable}}
	}
	bench(t, hang, func(p *prober, _ *atomic.Int32) {
		began := time.Now()
		for i := range 3 * inFlight {
			p.look(tenantOf(strconv.Itoa(i)), question{kubeconfig: []byte("k")})
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("looking took %s", waited)
		}
		later(time.Second)
		if got := asking.Load(); got == 0 || got > inFlight {
			t.Errorf("%d questions on their way, at most %d wanted", got, inFlight)
		}
		everyone := func() (answered int) {
			for i := range 3 * inFlight {
				if p.look(tenantOf(strconv.Itoa(i)), question{kubeconfig: []byte("k")}) != nil {
					answered++
				}
			}
			return answered
		}
		for rounds := 0; everyone() < 3*inFlight; rounds++ {
			if rounds == 4 {
				t.Errorf("only %d of %d were ever asked", everyone(), 3*inFlight)
				return
			}
			later(3 * patience)
		}
		if most.Load() > inFlight {
			t.Errorf("%d questions at the same time", most.Load())
		}
	})
}

func TestAnswersAreTheSame(t *testing.T) {
	fail := func(message string) *answer {
		return &answer{failure: &provisioner.Failure{Reason: "R", Message: message}}
	}
	good := func(version, kubeconfig string) *answer {
		return &answer{version: version, of: question{kubeconfig: []byte(kubeconfig)}}
	}
	cases := map[string]struct {
		a, b *answer
		want bool
	}{
		"Nothing":         {nil, nil, true},
		"First":           {nil, good("v1", "k"), false},
		"Same":            {good("v1", "k"), good("v1", "k"), true},
		"OtherVersion":    {good("v1", "k"), good("v2", "k"), false},
		"OtherKubeconfig": {good("v1", "k"), good("v1", "l"), false},
		"Failed":          {good("v1", "k"), fail("m"), false},
		"SameFailure":     {fail("m"), fail("m"), true},
		"OtherFailure":    {fail("m"), fail("n"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.a.same(tc.b) != tc.want || tc.b.same(tc.a) != tc.want {
				t.Errorf("want %v", tc.want)
			}
		})
	}
}
