package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/standalone/datadir"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux"
	"github.com/virtualcluster/virtualcluster/standalone/volumes"
)

const (
	// superName is the super cluster's on its host. No cluster key of a tenant
	// is as short.
	superName      = "super"
	logFile        = "vc-standalone.log"
	kubeconfigFile = "super.kubeconfig"

	startTimeout = 2 * time.Minute
	// crewPatience and hostPatience are what a stop may take.
	crewPatience = 8 * time.Second
	hostPatience = 15 * time.Second
)

// Instance is a standalone VirtualCluster that runs.
type Instance struct {
	// Super leads to the super cluster, as an admin.
	Super *rest.Config
	// Kubeconfig is the file that does the same.
	Kubeconfig string
	// Dir is the data directory.
	Dir *datadir.Dir
}

// standalone is an instance on its way up or down.
type standalone struct {
	opts     Options
	dir      *datadir.Dir
	log      *logs
	progress *progress
	// node is the real one; nil if nodes are simulated.
	node *linux.Node
	// volumes are where its pods have theirs.
	volumes volumes.Directory
}

// Run starts a standalone VirtualCluster, tells on out how that goes, hands it
// to use, and stops it when use returns. The context of use ends when ctx does,
// which is no error, or when a part of the instance fails.
func Run(ctx context.Context, opts Options, out io.Writer, use func(context.Context, *Instance) error) (err error) {
	if err := opts.Validate(); err != nil {
		return err
	}
	s := &standalone{opts: opts, progress: newProgress(out)}
	if s.dir, err = datadir.Open(opts.DataDir, kubernetesVersion()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.dir.Close()) }()
	if s.log, err = openLogs(s.dir.File(logFile), opts.Verbosity); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.log.close()) }()
	return s.run(ctx, use)
}

func (s *standalone) run(ctx context.Context, use func(context.Context, *Instance) error) (err error) {
	if err := s.openNode(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closeNode()) }()
	host, err := hosted.Start(context.WithoutCancel(ctx), s.hostOptions()) // it is stopped last, and not by ctx
	if err != nil {
		return err
	}
	crew := newCrew(ctx)
	defer func() { err = errors.Join(err, s.stop(crew, host)) }()
	crew.run("the host of control planes", func(ctx context.Context) error {
		select {
		case <-host.Done():
			return host.Err()
		case <-ctx.Done():
			return nil
		}
	})
	instance, err := s.start(crew, host)
	if err == nil {
		err = use(crew.ctx, instance)
	}
	if crew.ctx.Err() != nil {
		return failure(crew.ctx)
	}
	return err
}

func (s *standalone) hostOptions() hosted.Options {
	options := hosted.Options{
		Dir:           s.dir.Path(),
		Listen:        s.opts.Listen,
		Port:          s.opts.choosePort(s.dir.Port()),
		Default:       superName,
		Super:         superName,
		PrepareShared: !s.opts.Bare && s.opts.TenantIsolation == string(tenancyv1alpha1.IsolationShared),
		Metrics:       metrics.Registry,
		UnsafeNoFsync: s.opts.UnsafeNoFsync,
		Observer:      s.opts.Observer,
		Log:           s.log.Logger,
	}
	if s.node != nil {
		options.PodAddress = s.node.HostAddress()
	}
	return options
}

// stop ends everything, the host last: the others still have leases to release.
func (s *standalone) stop(crew *crew, host *hosted.Host) error {
	ctx, cancel := context.WithTimeout(context.Background(), crewPatience)
	defer cancel()
	err := crew.stop(ctx)
	ctx, cancel = context.WithTimeout(context.Background(), hostPatience)
	defer cancel()
	err = errors.Join(err, host.Stop(ctx))
	if err == nil {
		s.progress.step("stopped", "everything")
	}
	return err
}

// rememberPort keeps the port for the next start.
func (s *standalone) rememberPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address of the host: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port of the host: %w", err)
	}
	return s.dir.RememberPort(number)
}

// kubernetesVersion is that of the control planes; empty in a build that was not told.
func kubernetesVersion() string {
	v := version.Get().GitVersion
	if strings.HasPrefix(v, "v0.0.0-") {
		return ""
	}
	return v
}
