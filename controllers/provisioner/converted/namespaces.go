package converted

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// initialNamespaces are those that each cluster has.
func initialNamespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
}

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-root.tenancy.x-k8s.io,verbs=get
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-root.tenancy.x-k8s.io,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-root.tenancy.x-k8s.io,verbs=patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=converted-root.tenancy.x-k8s.io,verbs=bind

// ensureShelf lets the tenant's service account use the tenant's objects that are
// in the root namespace.
func (p *Provisioner) ensureShelf(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	bindings, root := p.bindings, vc.Status.ClusterNamespace
	bindings.Finalizers = nil // the tenant uses no namespace that is deleted with it
	role := types.NamespacedName{Namespace: root, Name: names.ConvertedRootRole}
	return bindings.Ensure(ctx, role, types.NamespacedName{Namespace: root, Name: names.ConvertedAccount}, vc)
}

// ensureNamespaces creates the initial namespaces, and ensures what all of the
// tenant's have; vc-gateway creates the others.
func (p *Provisioner) ensureNamespaces(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, gateway converted.Gateway) error {
	root := &corev1.Namespace{}
	if err := p.client.Get(ctx, types.NamespacedName{Name: vc.Status.ClusterNamespace}, root); err != nil {
		return fmt.Errorf("get root namespace %s: %w", vc.Status.ClusterNamespace, err)
	}
	existing, err := p.namespacesOf(ctx, vc)
	if err != nil {
		return err
	}
	meta, err := converted.NamespaceOf(vc, gateway)
	if err != nil {
		return err
	}
	for _, name := range initialNamespaces() {
		want := namespace(meta, root, name)
		if existing[want.Name] != nil {
			continue
		}
		err := p.client.Create(ctx, want, fieldOwner)
		if apierrors.IsAlreadyExists(err) {
			continue // the cache lags
		}
		if err != nil {
			return fmt.Errorf("create namespace %s: %w", want.Name, err)
		}
		existing[want.Name] = want
	}
	for _, each := range existing {
		want := namespace(meta, root, each.Annotations[names.Namespace])
		if err := p.ensureNamespace(ctx, vc, want, each); err != nil {
			return err
		}
	}
	return nil
}

// namespacesOf returns the tenant's namespaces in the super cluster, by name.
func (p *Provisioner) namespacesOf(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (map[string]*corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	selected := client.MatchingLabels{names.Converted: vc.Status.ClusterNamespace}
	if err := p.client.List(ctx, list, selected); err != nil {
		return nil, fmt.Errorf("list namespaces of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	found := map[string]*corev1.Namespace{}
	for i := range list.Items {
		if each := &list.Items[i]; each.Annotations[names.VCUID] == string(vc.UID) {
			found[each.Name] = each
		}
	}
	return found, nil
}

// namespace returns a namespace of the tenant in the super cluster, with the
// metadata of all of them. The root namespace owns it, so that it cannot outlive
// the tenant.
func namespace(of metav1.ObjectMeta, root *corev1.Namespace, name string) *corev1.Namespace {
	meta := *of.DeepCopy()
	meta.Name = names.SuperNamespace(root.Name, name)
	meta.Annotations[names.Namespace] = name
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: root.Name, UID: root.UID}}
	return &corev1.Namespace{ObjectMeta: meta}
}

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,resourceNames=tenant-isolation.tenancy.x-k8s.io,verbs=get

// isolate creates the NetworkPolicy by which the pods of a namespace cannot be
// reached, if there is none. vc-syncer keeps it, and admits what may be.
func (p *Provisioner) isolate(ctx context.Context, namespace string, labels map[string]string) error {
	want := converted.Isolation(namespace, labels)
	key := client.ObjectKeyFromObject(want)
	err := p.live.Get(ctx, key, &networkingv1.NetworkPolicy{})
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(p.client.Create(ctx, want, fieldOwner))
	}
	if err != nil {
		return fmt.Errorf("create NetworkPolicy %s: %w", key, err)
	}
	return nil
}

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-tenant.tenancy.x-k8s.io,verbs=get
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-tenant.tenancy.x-k8s.io,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=converted-tenant.tenancy.x-k8s.io,verbs=patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=converted-tenant.tenancy.x-k8s.io,verbs=bind

// ensureNamespace brings a namespace to the tenant's policy, isolates its pods,
// and lets the tenant's service account use it.
func (p *Provisioner) ensureNamespace(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, want, existing *corev1.Namespace,
) error {
	if !existing.DeletionTimestamp.IsZero() {
		return nil
	}
	if !has(existing.Labels, want.Labels) || !has(existing.Annotations, want.Annotations) || len(existing.OwnerReferences) == 0 {
		changed := existing.DeepCopy()
		maps.Copy(changed.Labels, want.Labels)
		maps.Copy(changed.Annotations, want.Annotations)
		changed.OwnerReferences = want.OwnerReferences
		if err := p.client.Patch(ctx, changed, client.MergeFrom(existing), fieldOwner); err != nil {
			return fmt.Errorf("update namespace %s: %w", existing.Name, err)
		}
	}
	if vc.Spec.Policy == nil || !vc.Spec.Policy.AllowTrafficFromTenants {
		if err := p.isolate(ctx, existing.Name, want.Labels); err != nil {
			return err
		}
	}
	role := types.NamespacedName{Namespace: existing.Name, Name: names.ConvertedRole}
	return p.bindings.Ensure(ctx, role, types.NamespacedName{Namespace: want.Labels[names.Converted], Name: names.ConvertedAccount}, vc)
}

// has reports whether all of the wanted pairs exist.
func has(existing, wanted map[string]string) bool {
	for key, value := range wanted {
		if have, ok := existing[key]; !ok || have != value {
			return false
		}
	}
	return true
}
