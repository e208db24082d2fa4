package provisionertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const credentials = `
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: %[1]s, user: admin}}]
clusters: [{name: %[1]s, cluster: {server: "https://%[1]s.example"}}]
users: [{name: admin, user: {token: t}}]
`

// toy is a provisioner whose control planes take a second to start, and a call
// to be deleted. Its fields break the contract.
type toy struct {
	mu      sync.Mutex
	started map[types.UID]time.Time

	capabilities, failures int

	growsCapabilities, waits, changes, shares, leaves, forgets, flaps, plainly, garbage, stuck, lingers bool
}

func (p *toy) Ensure(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	if p.waits {
		time.Sleep(time.Minute) // without the lock: the bubble's clock stands still for those that wait for one
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes {
		vc.Status.Endpoint = "changed"
	}
	if vc.Name == "invalid" {
		return provisioner.ControlPlane{}, p.fail()
	}
	began, ok := p.started[vc.UID]
	if !ok {
		began = time.Now()
		p.started[vc.UID] = began
	}
	if time.Since(began) < time.Second {
		return provisioner.ControlPlane{Message: "starting"}, nil
	}
	if p.forgets {
		delete(p.started, vc.UID)
	}
	name := string(vc.UID)
	if p.shares {
		name = "all"
	}
	state := provisioner.ControlPlane{
		Ready: true, Endpoint: "https://" + name + ".example", Version: "v1.36.3", Kubeconfig: fmt.Appendf(nil, credentials, name),
	}
	if p.garbage {
		state.Endpoint, state.Version, state.KubeletClientCA = "red.example", "newest", []byte("CA")
	}
	return state, nil
}

func (p *toy) fail() error {
	p.failures++
	switch {
	case p.plainly:
		return errors.New("wrong")
	case p.flaps:
		return provisioner.Failf("InvalidSpec", "wrong for the %d. time", p.failures)
	default:
		return provisioner.Failf("InvalidSpec", "wrong")
	}
}

func (p *toy) Delete(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, found := p.started[vc.UID]
	if p.leaves {
		return false, nil
	}
	delete(p.started, vc.UID)
	if p.stuck {
		clear(p.started)
	}
	return !found, nil
}

func (p *toy) Capabilities() provisioner.Capabilities {
	p.capabilities++
	return provisioner.Capabilities{Network: p.growsCapabilities && p.capabilities > 1}
}

func (p *toy) Start(ctx context.Context) error {
	<-ctx.Done()
	if p.lingers {
		time.Sleep(time.Minute)
	}
	return nil
}

// TestCheck: a good provisioner passes, and each violation is found.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		violate func(*toy)
		want    string // in the error; empty if there is none
	}{
		"good":                           {func(*toy) {}, ""},
		"other capabilities":             {func(p *toy) { p.growsCapabilities = true }, "declares the same capabilities"},
		"waits for the control plane":    {func(p *toy) { p.waits = true }, "Ensure took 1m"},
		"changes the VirtualCluster":     {func(p *toy) { p.changes = true }, "Ensure has changed the VirtualCluster"},
		"one kubeconfig for all":         {func(p *toy) { p.shares = true }, "two VirtualClusters have the same kubeconfig"},
		"never deletes":                  {func(p *toy) { p.leaves = true }, "the control plane is not deleted: after 10s"},
		"starts again at each call":      {func(p *toy) { p.forgets = true }, "it is not any more: starting"},
		"deletes others too":             {func(p *toy) { p.stuck = true }, "after the deletion of another control plane"},
		"fails otherwise each time":      {func(p *toy) { p.flaps = true }, "conditions would change without end"},
		"fails without a reason":         {func(p *toy) { p.plainly = true }, "it returns no Failure"},
		"reports what cannot be used":    {func(p *toy) { p.garbage = true }, `"red.example": it must be a URL with https`},
		"works on after its context end": {func(p *toy) { p.lingers = true }, "Start does not return"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, serial := &toy{started: map[types.UID]time.Time{}}, 0
				c.violate(p)
				err := Check(t.Context(), Case{
					New: func(context.Context) (provisioner.Provisioner, error) { return p, nil },
					VirtualCluster: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
						serial++
						return named("t" + strconv.Itoa(serial)), nil
					},
					Invalid:  func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) { return named("invalid"), nil },
					Patience: 10 * time.Second,
				})
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				time.Sleep(time.Hour) // until all goroutines have ended
			})
		})
	}
}

// TestIncompleteCases: what authors forget is reported.
func TestIncompleteCases(t *testing.T) {
	err := Check(t.Context(), Case{
		New: func(context.Context) (provisioner.Provisioner, error) {
			return &toy{started: map[types.UID]time.Time{}}, nil
		},
		VirtualCluster: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
			return &tenancyv1alpha1.VirtualCluster{}, nil
		},
	})
	if err == nil || !strings.Contains(err.Error(), "it has no UID or no status.clusterNamespace") {
		t.Errorf("got %v", err)
	}
	err = Check(t.Context(), Case{New: func(context.Context) (provisioner.Provisioner, error) { return nil, nil }})
	if err == nil || !strings.Contains(err.Error(), "it returns no provisioner") {
		t.Errorf("got %v", err)
	}
}

func named(name string) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name, UID: types.UID(name)}}
	vc.Status.ClusterNamespace = "tenants-" + name
	return vc
}
