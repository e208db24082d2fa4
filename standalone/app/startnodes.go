package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	shareddns "github.com/virtualcluster/virtualcluster/config/dns"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/metricsserver"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/simulated"
	"github.com/virtualcluster/virtualcluster/standalone/volumes"
)

// volumesName is the directory of volumes in the node's /var/lib.
const volumesName = "volumes"

// openNode connects a real node to this machine, if there is to be one.
func (s *standalone) openNode() error {
	if !s.opts.Nodes.Real {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	options := linux.Options{
		Dir:      s.dir.File("node"),
		Programs: filepath.Join(filepath.Dir(self), "node"),
		Images:   s.opts.NodeImages,
		Command:  []string{nodeCommand},
		Output:   s.log.file,
		Log:      s.log.WithName("node"),
	}
	s.volumes = volumes.Directory{
		Here: options.Library(volumesName), There: filepath.Join("/var/lib", volumesName), Node: linux.Name,
	}
	s.node, err = linux.Open(options)
	return err
}

// podNetwork is where pods have their addresses.
func (s *standalone) podNetwork() string {
	if s.node == nil {
		return simulated.PodNetwork
	}
	return s.node.PodNetwork()
}

func (s *standalone) closeNode() error {
	if s.node == nil {
		return nil
	}
	return s.node.Close()
}

func (s *standalone) startNodes(ctx context.Context, crew *crew, super *hosted.ControlPlane) error {
	if s.node != nil {
		return s.startRealNode(ctx, crew, super)
	}
	if err := linux.Forget(ctx, super.RESTConfig()); err != nil {
		return err
	}
	if err := metricsserver.Remove(ctx, super.RESTConfig()); err != nil {
		return err
	}
	// They play on after the start, so they get the crew's context, and the
	// start's to be waited for.
	err := simulated.Run(crew.ctx, super.RESTConfig(), s.opts.Nodes.Simulated, s.log.file)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	s.progress.step("nodes", fmt.Sprintf("%d, simulated by kwok", s.opts.Nodes.Simulated))
	return nil
}

func (s *standalone) startRealNode(ctx context.Context, crew *crew, super *hosted.ControlPlane) error {
	if err := simulated.RemoveAll(ctx, super.RESTConfig()); err != nil {
		return err
	}
	if err := linux.Allow(ctx, super.RESTConfig()); err != nil {
		return err
	}
	started := time.Now()
	crew.run("the node", func(ctx context.Context) error {
		return s.node.Run(ctx, linux.Cluster{ControlPlane: super, DNS: super.DNSAddress(), Domain: super.ClusterDomain()})
	})
	if err := linux.AwaitReady(ctx, super.RESTConfig(), started); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err := s.serveNames(ctx, super); err != nil {
		return err
	}
	crew.run("the provisioner of volumes", func(ctx context.Context) error {
		return volumes.Run(ctx, super.RESTConfig(), s.volumes, s.log.WithName("volumes"))
	})
	if err := metricsserver.Install(ctx, super.RESTConfig()); err != nil {
		return err
	}
	s.progress.step("node", fmt.Sprintf("%s at %s", linux.Name, s.node.Address()))
	return nil
}

// serveNames gives the super cluster a DNS for its own pods, and one that all
// tenants share, if there is to be one.
func (s *standalone) serveNames(ctx context.Context, super *hosted.ControlPlane) error {
	client, err := dynamic.NewForConfig(super.RESTConfig())
	if err != nil {
		return err
	}
	settings := dns.Settings{Image: dns.DefaultImage, Domain: super.ClusterDomain(), Address: super.DNSAddress().String()}
	objects, err := settings.Objects()
	if err != nil {
		return err
	}
	if err := addons.Ensure(ctx, client, objects); err != nil {
		return fmt.Errorf("set up the super cluster's DNS: %w", err)
	}
	if !s.opts.sharedDNS() {
		return nil
	}
	account, err := rbac.For(rbac.DNS)
	if err != nil {
		return err
	}
	program, err := addons.Render(shareddns.Manifests(), nil)
	if err != nil {
		return err
	}
	if err := addons.Ensure(ctx, client, slices.Concat(account, program)); err != nil {
		return fmt.Errorf("set up the DNS that tenants share: %w", err)
	}
	return nil
}
