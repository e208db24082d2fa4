package app

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	shareddns "github.com/virtualcluster/virtualcluster/config/dns"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	controllers "github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
	syncer "github.com/virtualcluster/virtualcluster/syncer/app"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// start brings up one part after the other.
func (s *standalone) start(crew *crew, host *hosted.Host) (*Instance, error) {
	ctx, cancel := context.WithTimeoutCause(crew.ctx, startTimeout, fmt.Errorf("not started after %s", startTimeout))
	defer cancel()
	controlPlane, err := s.startSuper(ctx, crew, host)
	if err != nil {
		return nil, err
	}
	if err := s.startNodes(ctx, crew, controlPlane); err != nil {
		return nil, err
	}
	super := controlPlane.RESTConfig()
	if !s.opts.Bare {
		if err := s.startParts(ctx, crew, host, super); err != nil {
			return nil, err
		}
	}
	instance := &Instance{Super: super, Kubeconfig: s.dir.File(kubeconfigFile), Dir: s.dir}
	s.progress.ready(instance.Kubeconfig)
	return instance, nil
}

// startParts brings up what makes an ordinary cluster a super cluster.
func (s *standalone) startParts(ctx context.Context, crew *crew, host *hosted.Host, super *rest.Config) (err error) {
	certificate, err := s.agentCertificate()
	if err != nil {
		return err
	}
	listener, agent, err := s.listenForAgent()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && listener != nil {
			_ = listener.Close() // vn-agent has closed it if it ran already
		}
	}()
	policy, err := s.egressPolicy(crew.ctx, super, agent)
	if err != nil {
		return err
	}
	door, err := s.openGateway()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			door.close()
		}
	}()
	if err := s.startManager(ctx, crew, host, super, policy, certificate); err != nil {
		return err
	}
	if err := s.startGateway(ctx, crew, super, door, policy); err != nil {
		return err
	}
	if err := s.startAgent(ctx, crew, super, listener, certificate); err != nil {
		return err
	}
	return s.startSyncer(ctx, crew, super, agent)
}

// startSuper brings up the super cluster, with the tenancy API in it unless it
// is bare.
func (s *standalone) startSuper(ctx context.Context, crew *crew, host *hosted.Host) (*hosted.ControlPlane, error) {
	super, err := host.Run(s.superSpec())
	if err != nil {
		return nil, fmt.Errorf("start the super cluster: %w", err)
	}
	crew.run("the super cluster", func(ctx context.Context) error {
		select {
		case <-super.Done():
			return super.Err()
		case <-ctx.Done():
			return nil
		}
	})
	select {
	case <-super.Ready():
	case <-ctx.Done():
		return nil, fmt.Errorf("start the super cluster: %w", context.Cause(ctx))
	}
	if err := s.rememberPort(host.Address()); err != nil {
		return nil, err
	}
	if err := s.dir.WriteFile(kubeconfigFile, super.AdminKubeconfig()); err != nil {
		return nil, err
	}
	s.progress.step("super cluster", "Kubernetes "+super.Version().GitVersion+" at "+super.Endpoint())
	if s.opts.Bare {
		return super, nil
	}
	if err := installCRDs(ctx, super.RESTConfig()); err != nil {
		return nil, err
	}
	s.progress.step("tenancy API", "installed")
	if err := serveTenantAddresses(ctx, super.RESTConfig(), s.opts.newServicePools()...); err != nil {
		return nil, err
	}
	if s.opts.ManagerOptions.ConvertedTenants {
		if err := installConverted(ctx, super.RESTConfig()); err != nil {
			return nil, err
		}
	}
	return super, nil
}

func (s *standalone) superSpec() hosted.Spec {
	spec := hosted.Spec{
		Name: superName, Stock: true, Controllers: hosted.SuperControllers(), Diagnostics: true, Network: egress.Unrestricted{},
	}
	if s.opts.hasIPv6() {
		spec.SecondaryServiceCIDR = superSecondaryServiceCIDR
	}
	if s.opts.Nodes.Real {
		spec.NodeAuthorization = true
		spec.Controllers = slices.Concat(spec.Controllers, hosted.KubeletControllers())
	}
	return spec
}

// startManager runs vc-manager with the provisioners that this process can
// offer. The policy says what tenants' apiservers connect to.
func (s *standalone) startManager(
	ctx context.Context, crew *crew, host *hosted.Host, super *rest.Config, policy *egress.Policy, certificate *hosted.ServingCertificate,
) error {
	if !s.opts.Manager {
		return nil
	}
	counted, err := provisioner.NewMetrics(metrics.Registry, host.Sleeping)
	if err != nil {
		return err
	}
	here := provisioner.New(crew.ctx, host, s.opts.HostedOptions(policy, certificate.CA(), counted))
	options := s.opts.ManagerOptions
	options.DefaultProvisioner = tenancyv1alpha1.ProvisionerHosted
	if s.opts.Nodes.Real { // pods on other nodes ask nothing, and use nothing
		options.CoreDNSImage = dns.DefaultImage
		options.AgentAddress, options.AgentCAFile = policy.Agent, certificate.CAFile()
	}
	if s.opts.sharedDNS() {
		options.SharedDNS = types.NamespacedName{Namespace: rbac.Namespace, Name: shareddns.Service}
	}
	options.Logger, options.Registerer = s.log.WithName("vc-manager"), s.opts.SyncerOptions.Registerer
	mgr, err := controllers.New(super, options, external.Registration(), contract.Registration{
		Name: tenancyv1alpha1.ProvisionerHosted,
		New:  func(manager.Manager) (contract.Provisioner, error) { return here, nil },
	})
	if err != nil {
		return fmt.Errorf("make vc-manager: %w", err)
	}
	crew.run("vc-manager", func(ctx context.Context) error {
		defer counted.Unregister()
		defer here.Wait()
		return mgr.Start(ctx)
	})
	return s.await(ctx, "vc-manager", mgr)
}

// startSyncer runs vc-syncer. agent is where tenants' apiservers reach
// vn-agent, empty if they do not.
func (s *standalone) startSyncer(ctx context.Context, crew *crew, super *rest.Config, agent string) error {
	if !s.opts.Syncer {
		return nil
	}
	options := s.opts.SyncerOptions
	options.Logger = s.log.Logger
	options.AgentAddress = agent
	options.SharedDNS = s.opts.sharedDNS()
	if len(options.PodCIDRs) == 0 {
		options.PodCIDRs = []string{s.podNetwork()}
	}
	if options.Networks {
		var err error
		if options.InternalCIDRs, err = machineNetworks(); err != nil {
			return err
		}
	}
	if s.opts.ManagerOptions.ConvertedTenants {
		if err := limitConverted(ctx, super, &options); err != nil {
			return err
		}
	}
	mgr, err := syncer.New(crew.ctx, super, options)
	if err != nil {
		return fmt.Errorf("make vc-syncer: %w", err)
	}
	crew.run("vc-syncer", mgr.Start)
	return s.await(ctx, "vc-syncer", mgr.GetLocalManager())
}

// await waits until a manager works.
func (s *standalone) await(ctx context.Context, what string, mgr manager.Manager) error {
	select {
	case <-mgr.Elected():
	case <-ctx.Done():
		return fmt.Errorf("start %s: %w", what, context.Cause(ctx))
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("start %s: %w", what, context.Cause(ctx))
	}
	s.progress.step(what, "works")
	return nil
}
