package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// mine is the namespace of the program's objects in the super cluster, and the
// prefix of the names of cluster-scoped ones.
const mine = "vc-bench"

// world is the environment of scenarios: a super cluster, a syncer, and tenants
// that scenarios share.
type world struct {
	opts     Options
	out      io.Writer
	results  string
	progress *progress
	report   *report.Report

	// dir has temporary data, which is deleted at the end.
	dir   string
	super *local.SuperCluster
	// started reports whether the program started the super cluster, claimed
	// whether it created its namespace there.
	started, claimed bool
	access           access
	log              *os.File
	syncer           *syncer // nil while none runs
	fleet            []*local.Tenant
	loads            int
	lookups          lookups
}

// start starts the super cluster and a syncer.
func (w *world) start(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "vc-bench-"); err != nil {
		return fmt.Errorf("create a directory for data: %w", err)
	}
	if w.log, err = os.Create(filepath.Join(w.results, "vc-syncer.log")); err != nil {
		return fmt.Errorf("create the syncer's log: %w", err)
	}
	if err := w.findSuper(ctx); err != nil {
		return err
	}
	if err := w.claim(ctx); err != nil {
		return err
	}
	if err := w.describe(ctx); err != nil {
		return err
	}
	if err := w.grant(ctx); err != nil {
		return err
	}
	return w.startSyncer(ctx)
}

// claim creates the namespace for the program's objects, which also serves as a
// lock.
func (w *world) claim(ctx context.Context) error {
	err := w.super.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mine}})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the super cluster has a namespace %s: another vc-bench is running there, or one was killed; "+
			"in the latter case, delete the namespace while a vc-syncer runs", mine)
	}
	if err != nil {
		return fmt.Errorf("create the namespace %s in the super cluster: %w", mine, err)
	}
	w.claimed = true
	return nil
}

// findSuper starts a super cluster, or connects to the existing one.
func (w *world) findSuper(ctx context.Context) (err error) {
	if w.opts.Kubeconfig == "" {
		w.progress.sayf("starting a super cluster with %d nodes", w.opts.Nodes)
		w.started = true
		w.super, err = w.controlPlane(ctx, "super", "--nodes", strconv.Itoa(w.opts.Nodes))
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.opts.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	config.QPS = -1
	c, err := local.NewClient(config)
	w.super = &local.SuperCluster{Config: config, Client: c}
	return err
}

// controlPlane starts a control plane as a process of its own. Its log is kept
// with the results.
func (w *world) controlPlane(ctx context.Context, name string, args ...string) (*local.SuperCluster, error) {
	dir := filepath.Join(w.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	kept, err := filepath.Abs(filepath.Join(w.results, name+".log"))
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(kept, filepath.Join(dir, "vc-standalone.log")); err != nil {
		return nil, err
	}
	return local.StartBinary(ctx, filepath.Join(w.opts.Binaries, "vc-standalone"), dir, append([]string{"--syncer=false"}, args...)...)
}

// describe records the environment.
func (w *world) describe(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(w.super.Config)
	if err != nil {
		return err
	}
	super, err := d.ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of the super cluster: %w", err)
	}
	nodes := &corev1.NodeList{}
	if err := w.super.Client.List(ctx, nodes); err != nil {
		return fmt.Errorf("count the super cluster's nodes: %w", err)
	}
	total, _, err := measure.Memory()
	w.report.Machine = report.Machine{
		CPUs: runtime.NumCPU(), MemoryMiB: total / measure.MiB, Architecture: runtime.GOARCH, System: runtime.GOOS,
		Super: super.GitVersion, Nodes: len(nodes.Items),
	}
	return err
}

// stop stops everything that was started and deletes the program's objects from
// an existing super cluster.
func (w *world) stop(ctx context.Context) error {
	w.progress.enter("")
	w.progress.sayf("cleaning up")
	var errs []error
	if w.claimed && !w.started {
		errs = append(errs, w.clear(ctx))
	}
	errs = append(errs, w.stopSyncer())
	if w.super != nil && w.started {
		errs = append(errs, w.super.Stop())
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

// clear deletes the program's objects in the super cluster, except the roles of
// the syncer.
func (w *world) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	namespaces := &corev1.NamespaceList{}
	if err := w.super.Client.List(ctx, namespaces, client.MatchingLabels{madeBy: mine}); err != nil {
		return fmt.Errorf("list the objects to delete: %w", err)
	}
	all := append(w.made(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mine}})
	for i := range namespaces.Items {
		all = append(all, &namespaces.Items[i])
	}
	var errs []error
	for _, obj := range all {
		errs = append(errs, client.IgnoreNotFound(w.super.Client.Delete(ctx, obj)))
	}
	for _, obj := range all {
		errs = append(errs, w.awaitGone(ctx, obj))
	}
	return errors.Join(errs...)
}

// writeKubeconfig writes a kubeconfig with a token.
func writeKubeconfig(path string, c *rest.Config) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[mine] = &clientcmdapi.Cluster{
		Server: c.Host, TLSServerName: c.ServerName, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile,
		InsecureSkipTLSVerify: c.Insecure,
	}
	config.AuthInfos[mine] = &clientcmdapi.AuthInfo{Token: c.BearerToken}
	config.Contexts[mine] = &clientcmdapi.Context{Cluster: mine, AuthInfo: mine}
	config.CurrentContext = mine
	return clientcmd.WriteToFile(*config, path)
}
