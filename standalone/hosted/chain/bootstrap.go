package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	componentversion "k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
	"k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	netutils "k8s.io/utils/net"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	// stampKey has the version of Kubernetes whose objects a tenant has. Its
	// revision is the one up to which the roles of every cluster are complete.
	stampKey = "/bootstrap"
	// systemNamespace exists in each cluster.
	systemNamespace = "/namespaces/" + metav1.NamespaceSystem
	// maxOperations is the number of operations that every etcd accepts in a
	// transaction: its default of --max-txn-ops.
	maxOperations  = 128
	kubernetesName = "kubernetes"
	securePort     = 443
	secureScheme   = "https"
)

// Bootstrap makes sure that a tenant has the objects of every cluster, until it
// is removed. It is fast for a new tenant, and for one that this version of
// Kubernetes has served before.
func (c *Chain) Bootstrap(ctx context.Context, t *Tenant) error {
	ctx = keyspace.NewContext(ctx, t.spec.Name)
	if err := c.ensureSharedObjects(ctx, t); err != nil {
		return err
	}
	if err := ensureNamespaces(ctx, t.client); err != nil {
		return err
	}
	if err := c.ensureOwnObjects(ctx, t); err != nil {
		return err
	}
	t.upkeep.begin()
	t.registration.begin()
	return nil
}

// ensureSharedObjects ensures the objects that are the same in every cluster;
// roles that the tenant has changed only at the start, as upstream does.
func (c *Chain) ensureSharedObjects(ctx context.Context, t *Tenant) error {
	found, err := c.opts.Store.KV.Get(ctx, stampKey)
	if err != nil {
		return fmt.Errorf("read the version of a tenant's objects: %w", err)
	}
	if len(found.Kvs) == 0 || string(found.Kvs[0].Value) != stampOf() {
		return c.createObjects(ctx, t)
	}
	if t.upkeep.isBegun() {
		return nil
	}
	restored, err := c.restoreRoles(ctx, t, found.Kvs[0].ModRevision)
	if err != nil || !restored {
		return err
	}
	return c.writeStamp(ctx)
}

func stampOf() string { return componentversion.Get().String() }

// Prepare reads the objects of a new cluster, which the first new tenant would
// wait for.
func (c *Chain) Prepare() error {
	_, err := c.template.get()
	return err
}

// createObjects copies the template to a new tenant. In others, it updates what
// another version of Kubernetes has created.
func (c *Chain) createObjects(ctx context.Context, t *Tenant) error {
	made, err := c.template.get()
	if err != nil {
		return err
	}
	writes, err := made.copies(t.spec.ClientCA)
	if err != nil {
		return err
	}
	copied, err := c.writeNew(ctx, append(writes, stamp()))
	if err != nil {
		return fmt.Errorf("create the objects of a new cluster: %w", err)
	}
	if copied {
		return nil
	}
	if err := runHooks(ctx, t); err != nil {
		return err
	}
	return c.writeStamp(ctx)
}

// writeNew writes the objects of a tenant that has no system namespace, and
// reports whether it has none. An etcd limits the operations of a transaction.
// The system namespace is in the last one, so that a start that was interrupted
// is repeated.
func (c *Chain) writeNew(ctx context.Context, writes []clientv3.Op) (written bool, err error) {
	slices.SortStableFunc(writes, func(a, b clientv3.Op) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	for chunk := range slices.Chunk(writes, maxOperations) {
		response, err := c.opts.Store.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(systemNamespace), "=", 0)).
			Then(chunk...).Commit()
		if err != nil || !response.Succeeded {
			return false, err
		}
	}
	return true, nil
}

// rankOf orders the writes of a new tenant.
func rankOf(write clientv3.Op) int {
	switch string(write.KeyBytes()) {
	case stampKey:
		return 1
	case systemNamespace:
		return 2
	default:
		return 0
	}
}

func stamp() clientv3.Op { return clientv3.OpPut(stampKey, stampOf()) }

func (c *Chain) writeStamp(ctx context.Context) error {
	if _, err := c.opts.Store.Do(ctx, stamp()); err != nil {
		return fmt.Errorf("write the version of a tenant's objects: %w", err)
	}
	return nil
}

// ensureOwnObjects creates the objects that every cluster has with contents of
// its own.
func (c *Chain) ensureOwnObjects(ctx context.Context, t *Tenant) error {
	if err := t.ensureConfigMap(ctx, "extension-apiserver-authentication", t.authenticationInfo()); err != nil {
		return err
	}
	tracked := map[string]string{legacytokentracking.ConfigMapDataKey: time.Now().UTC().Format(time.DateOnly)}
	if err := t.ensureConfigMap(ctx, legacytokentracking.ConfigMapName, tracked); err != nil {
		return err
	}
	if err := t.ensureServiceCIDR(ctx); err != nil {
		return err
	}
	return c.ensureKubernetesService(ctx, t)
}

// authenticationInfo returns the contents of the ConfigMap by which aggregated
// APIs verify the requests of this apiserver.
func (t *Tenant) authenticationInfo() map[string]string {
	info := map[string]string{"client-ca-file": string(t.spec.ClientCA)}
	if len(t.spec.FrontProxyCA) > 0 {
		info["requestheader-client-ca-file"] = string(t.spec.FrontProxyCA)
		info["requestheader-allowed-names"] = listOf(FrontProxyUser)
		info["requestheader-username-headers"] = listOf(FrontProxyUserHeader)
		info["requestheader-group-headers"] = listOf(FrontProxyGroupHeader)
		info["requestheader-extra-headers-prefix"] = listOf(FrontProxyExtraHeaders)
	}
	return info
}

// listOf returns a list with one name, in JSON.
func listOf(name string) string { return fmt.Sprintf("[%q]", name) }

const (
	// FrontProxyUser is the name in the certificate with which an apiserver sends
	// requests to aggregated APIs.
	FrontProxyUser = "front-proxy-client"
	// FrontProxyUserHeader is the header in which it sends the user of a request.
	FrontProxyUserHeader = "X-Remote-User"
	// FrontProxyGroupHeader is the header of each of the user's groups.
	FrontProxyGroupHeader = "X-Remote-Group"
	// FrontProxyExtraHeaders is the prefix of the headers with what else is known
	// of the user.
	FrontProxyExtraHeaders = "X-Remote-Extra-"
)

// ensureConfigMap creates a ConfigMap in kube-system, and updates the given
// keys, unless they are only set when it is created.
func (t *Tenant) ensureConfigMap(ctx context.Context, name string, data map[string]string) error {
	configMaps := t.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	found, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	case err == nil && name != legacytokentracking.ConfigMapName:
		changed := false
		for key, value := range data {
			if found.Data[key] != value {
				found.Data, changed = withKey(found.Data, key, value), true
			}
		}
		if changed {
			_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("ensure ConfigMap %s/%s: %w", metav1.NamespaceSystem, name, err)
	}
	return nil
}

func withKey(data map[string]string, key, value string) map[string]string {
	if data == nil {
		data = map[string]string{}
	}
	data[key] = value
	return data
}

// serviceCIDRs returns the ranges of ClusterIPs as text.
func (s Spec) serviceCIDRs() []string {
	all := make([]string, len(s.ServiceCIDRs))
	for i := range s.ServiceCIDRs {
		all[i] = s.ServiceCIDRs[i].String()
	}
	return all
}

// ensureServiceCIDR creates the range of ClusterIPs, and adds that of the second
// IP family to one that exists.
func (t *Tenant) ensureServiceCIDR(ctx context.Context) error {
	ranges := t.client.NetworkingV1().ServiceCIDRs()
	name := defaultservicecidr.DefaultServiceCIDRName
	found, err := ranges.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = ranges.Create(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: t.spec.serviceCIDRs()},
		}, metav1.CreateOptions{})
	}
	if cidrs := t.spec.serviceCIDRs(); err == nil && len(found.Spec.CIDRs) < len(cidrs) {
		found.Spec.CIDRs = cidrs
		found, err = ranges.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err == nil && len(found.Status.Conditions) == 0 {
		found.Status.Conditions = []metav1.Condition{{
			Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "Ready",
			Message: "Kubernetes default Service CIDR is ready", LastTransitionTime: metav1.Now(),
		}}
		_, err = ranges.UpdateStatus(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("ensure ServiceCIDR %s: %w", name, err)
	}
	return nil
}

// ensureKubernetesService creates the Service of the apiserver, and its
// endpoints if pods can reach it.
func (c *Chain) ensureKubernetesService(ctx context.Context, t *Tenant) error {
	address, err := netutils.GetIndexedIP(&t.spec.ServiceCIDRs[0], 1)
	if err != nil {
		return fmt.Errorf("the service CIDR %s is too small: %w", &t.spec.ServiceCIDRs[0], err)
	}
	port := securePort
	if t.spec.Endpoint != nil {
		port = t.spec.Endpoint.Port
	}
	services := t.client.CoreV1().Services(metav1.NamespaceDefault)
	if _, err = services.Get(ctx, kubernetesName, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		single := corev1.IPFamilyPolicySingleStack
		err = c.createOwnService(ctx, t, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: kubernetesName,
				Labels: map[string]string{"provider": kubernetesName, "component": "apiserver"},
			},
			Spec: corev1.ServiceSpec{
				ClusterIP: address.String(), IPFamilyPolicy: &single,
				SessionAffinity: corev1.ServiceAffinityNone, Type: corev1.ServiceTypeClusterIP,
				Ports: []corev1.ServicePort{{
					Name: secureScheme, Protocol: corev1.ProtocolTCP, Port: securePort, TargetPort: intstr.FromInt(port),
				}},
			},
		})
	}
	if err != nil {
		return fmt.Errorf("ensure Service %s/%s: %w", metav1.NamespaceDefault, kubernetesName, err)
	}
	return t.ensureEndpoints()
}

// ensureEndpoints sets the address at which pods reach the apiserver.
func (t *Tenant) ensureEndpoints() error {
	if t.spec.Endpoint == nil {
		return nil
	}
	reconciler := reconcilers.NewMasterCountEndpointReconciler(1, reconcilers.NewEndpointsAdapter(t.client.CoreV1(), t.client.DiscoveryV1()))
	port := int32(t.spec.Endpoint.Port) //nolint:gosec // a port
	ports := []corev1.EndpointPort{{Name: secureScheme, Protocol: corev1.ProtocolTCP, Port: port}}
	if err := reconciler.ReconcileEndpoints(kubernetesName, t.spec.Endpoint.IP, ports, true); err != nil {
		return fmt.Errorf("ensure the endpoints of Service %s/%s: %w", metav1.NamespaceDefault, kubernetesName, err)
	}
	return nil
}
