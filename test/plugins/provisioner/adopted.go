package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// interval is that of the requests to each apiserver, and timeout how long one
	// may take.
	interval = 2 * time.Second
	timeout  = 5 * time.Second
	// recheck is when to reconcile a tenant again without an event.
	recheck = 30 * time.Second
)

// adopted is a provisioner of control planes that run elsewhere, whose
// kubeconfigs a platform puts into a folder, as NAMESPACE.NAME.kubeconfig.
type adopted struct {
	folder string
	events chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]

	mu     sync.Mutex
	states map[string]*state // by file
}

// state is what is known of a control plane.
type state struct {
	of *tenancyv1alpha1.VirtualCluster
	// answered: the rest is known.
	answered   bool
	kubeconfig []byte
	endpoint   string
	version    string
	failure    *provisioner.Failure
}

// registration offers Adopted, if the flag with its folder is set.
func registration() provisioner.Registration {
	folder := ""
	return provisioner.Registration{
		Name:    "Adopted",
		Summary: "a control plane that runs elsewhere, by a kubeconfig in a folder; with --adopted-kubeconfigs",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&folder, "adopted-kubeconfigs", folder, "folder with a file NAMESPACE.NAME.kubeconfig for each VirtualCluster")
		},
		New: func(mgr manager.Manager) (provisioner.Provisioner, error) {
			if folder == "" {
				return nil, fmt.Errorf("%w: --adopted-kubeconfigs is not set", provisioner.ErrDisabled)
			}
			p := newAdopted(folder)
			return p, mgr.Add(p)
		},
	}
}

func newAdopted(folder string) *adopted {
	return &adopted{
		folder: folder,
		events: make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		states: map[string]*state{},
	}
}

// Ensure returns what is known of the control plane. Start finds it out.
func (p *adopted) Ensure(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, known := p.states[fileOf(vc)]
	if !known {
		s = &state{of: vc.DeepCopy()}
		p.states[fileOf(vc)] = s
	}
	switch {
	case !s.answered:
		return provisioner.ControlPlane{Message: "Asking the control plane for its version"}, nil
	case s.failure != nil:
		return provisioner.ControlPlane{}, s.failure
	}
	return provisioner.ControlPlane{
		Ready: true, Endpoint: s.endpoint, Version: s.version, Kubeconfig: s.kubeconfig, RecheckAfter: recheck,
	}, nil
}

// Delete forgets the control plane, which is not this program's to delete.
func (p *adopted) Delete(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, fileOf(vc))
	return true, nil
}

// Capabilities returns none: the control plane has Service addresses of its own,
// and does not reach the super cluster.
func (*adopted) Capabilities() provisioner.Capabilities { return provisioner.Capabilities{} }

// Events request a reconcile of each VirtualCluster whose control plane answers
// otherwise than before.
func (p *adopted) Events() <-chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster] {
	return p.events
}

// Start asks the apiservers until the context ends.
func (p *adopted) Start(ctx context.Context) error {
	for {
		var asking sync.WaitGroup
		for file, of := range p.all() {
			asking.Go(func() { p.look(ctx, file, of) })
		}
		asking.Wait()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// all returns the VirtualClusters by file.
func (p *adopted) all() map[string]*tenancyv1alpha1.VirtualCluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*tenancyv1alpha1.VirtualCluster{}
	for file, s := range p.states {
		all[file] = s.of
	}
	return all
}

// look asks one apiserver, and tells if there is news.
func (p *adopted) look(ctx context.Context, file string, of *tenancyv1alpha1.VirtualCluster) {
	found := ask(filepath.Join(p.folder, file))
	found.of, found.answered = of, true
	p.mu.Lock()
	before, known := p.states[file]
	if known {
		p.states[file] = found
	}
	p.mu.Unlock()
	if !known || before.answered && (before.failure == nil) == (found.failure == nil) {
		return
	}
	select {
	case p.events <- event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]{Object: of}:
	case <-ctx.Done():
	}
}

// ask reads a kubeconfig and asks its apiserver for the version.
func ask(path string) *state {
	data, err := os.ReadFile(path)
	if err != nil {
		return failed(tenancyv1alpha1.ReasonKubeconfigMissing, "create the file %s in the folder of --adopted-kubeconfigs", filepath.Base(path))
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return failed(tenancyv1alpha1.ReasonKubeconfigInvalid, "the file %s is not a kubeconfig", filepath.Base(path))
	}
	config.Timeout = timeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return failed(tenancyv1alpha1.ReasonKubeconfigInvalid, "the kubeconfig in %s cannot be used", filepath.Base(path))
	}
	version, err := client.ServerVersion()
	if err != nil {
		return failed(tenancyv1alpha1.ReasonUnreachable, "%s does not answer", config.Host)
	}
	return &state{kubeconfig: data, endpoint: config.Host, version: version.GitVersion}
}

func failed(reason, format string, args ...any) *state {
	return &state{failure: &provisioner.Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// fileOf returns the file of a VirtualCluster. A name has no dots.
func fileOf(vc *tenancyv1alpha1.VirtualCluster) string {
	return vc.Namespace + "." + vc.Name + ".kubeconfig"
}
