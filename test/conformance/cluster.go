package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// nodeTimeout is the time until a tenant has a node.
const nodeTimeout = 5 * time.Minute

// clusters are a super cluster with a real node, and the tenants in it.
type clusters struct {
	opts  *options
	dir   string
	super *local.SuperCluster
}

// startClusters starts a super cluster and makes the tenants of the sides that are run.
func startClusters(ctx context.Context, opts *options) (*clusters, error) {
	dir, err := os.MkdirTemp("", "vc-conformance-")
	if err != nil {
		return nil, err
	}
	super, err := local.StartBinary(ctx, filepath.Join(opts.binaries, "vc-standalone"), dir,
		"--nodes", "real", "--node-images", opts.file("images"), "--converted-tenants", "--unsafe-no-fsync")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &clusters{opts: opts, dir: dir, super: super}
	if err := c.offerRange(ctx); err != nil {
		return nil, errors.Join(err, super.Stop(), os.RemoveAll(dir))
	}
	for _, side := range opts.sides {
		if side == direct {
			continue
		}
		if err := c.makeTenant(ctx, side); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", side, err), super.Stop(), os.RemoveAll(dir))
		}
	}
	return c, nil
}

// offerRange offers the range of Service addresses to converted tenants, which the
// suite reads.
func (c *clusters) offerRange(ctx context.Context) error {
	own := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.Public+`":"true"}}}`))
	if err := c.super.Client.Patch(ctx, own, patch); err != nil {
		return fmt.Errorf("offer the range of Service addresses: %w", err)
	}
	return nil
}

// tenants returns the specs of the tenants by their sides.
func tenants() map[string]tenancyv1alpha1.VirtualClusterSpec {
	return map[string]tenancyv1alpha1.VirtualClusterSpec{
		shared:        open(tenancyv1alpha1.IsolationShared),
		dedicated:     open(tenancyv1alpha1.IsolationDedicated),
		defaultPolicy: {},
		converted:     openConverted(),
	}
}

// openConverted returns the same for a tenant without a control plane, whose hosts
// of ingresses nothing limits yet.
func openConverted() tenancyv1alpha1.VirtualClusterSpec {
	spec := tenancyv1alpha1.VirtualClusterSpec{
		Provisioner: tenancyv1alpha1.ProvisionerConverted, Policy: openPolicy(), Sync: &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll},
	}
	spec.Policy.IngressHosts = nil
	return spec
}

// open returns the spec of a tenant that is allowed everything that the suite
// requests.
func open(isolation tenancyv1alpha1.Isolation) tenancyv1alpha1.VirtualClusterSpec {
	return tenancyv1alpha1.VirtualClusterSpec{
		Policy: openPolicy(), Sync: &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll},
		ControlPlane: &tenancyv1alpha1.ControlPlaneSpec{Isolation: isolation},
	}
}

// openPolicy returns the policy that allows everything that the suite's pods
// request.
func openPolicy() *tenancyv1alpha1.TenantPolicy {
	return &tenancyv1alpha1.TenantPolicy{
		PodSecurity: tenancyv1alpha1.PodSecurityPrivileged, AllowHostNamespaces: true, AllowHostPath: true, AllowNodeName: true,
		AllowSystemPriority: true, AllowSystemTolerations: true, AllowProbeHosts: true, AllowExternalNames: true,
		AllowConversionWebhooks: true,
		IngressHosts:            []string{"*"}, HostPorts: []tenancyv1alpha1.PortRange{{Min: 1, Max: 65535}},
		AllowTolerations: []string{"*"}, AllowNodeProfiles: true, DaemonSets: tenancyv1alpha1.DaemonSetsRun,
		LoadBalancerClasses: []string{"example.com/internal-vip"},
		EndpointCIDRs:       []tenancyv1alpha1.CIDR{"0.0.0.0/0", "::/0"}, Limits: map[string]int64{"*": -1},
	}
}

// makeTenant makes a side's tenant, of the same name, and writes its kubeconfig.
func (c *clusters) makeTenant(ctx context.Context, side string) error {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: side},
		Spec:       tenants()[side],
	}
	made, err := c.super.NewTenant(ctx, vc)
	if err != nil {
		return err
	}
	if side == dedicated {
		if err := made.ChooseDNS(ctx, names.Dedicated); err != nil {
			return err
		}
	}
	if err := awaitNode(ctx, made); err != nil {
		return err
	}
	config, err := c.userKubeconfig(ctx, made)
	if err != nil {
		return err
	}
	return os.WriteFile(c.kubeconfig(side), config, 0o600)
}

// awaitNode runs a pod until the tenant has a node that is ready, as the suite
// requires. A tenant has the nodes of its pods.
func awaitNode(ctx context.Context, t *local.Tenant) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "idle"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.2"}}},
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, nodeTimeout, true, func(ctx context.Context) (bool, error) {
		// It is rejected until the namespace has a service account.
		if err := t.Client.Create(ctx, pod.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		nodes := &corev1.NodeList{}
		if err := t.Client.List(ctx, nodes); err != nil {
			return false, err
		}
		return slices.ContainsFunc(nodes.Items, isReady), nil
	})
	if err != nil {
		return fmt.Errorf("wait for a node of the tenant: %w", err)
	}
	return nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// userKubeconfig returns the kubeconfig that the users of a tenant get by
// default. It leads through the gateway: the suite ignores TLS server names.
func (c *clusters) userKubeconfig(ctx context.Context, t *local.Tenant) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}
	if err := c.super.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the tenant's kubeconfig: %w", err)
	}
	return kubeconfig.ForUsers(secret.Data), nil
}

// kubeconfig is the file of a side's.
func (c *clusters) kubeconfig(side string) string {
	if side == direct {
		return filepath.Join(c.dir, "super.kubeconfig")
	}
	return filepath.Join(c.dir, side+".kubeconfig")
}

func (c *clusters) suite(side string) suite {
	return suite{side: side, kubeconfig: c.kubeconfig(side), opts: c.opts}
}

func (c *clusters) stop(out console) {
	if err := errors.Join(c.super.Stop(), os.RemoveAll(c.dir)); err != nil {
		out.sayf("stopping the clusters: %v", err)
	}
}
