package resources

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// enforceLabel is the label by which Pod Security admission rejects pods
// (Kubernetes documentation: Pod Security Admission).
const enforceLabel = "pod-security.kubernetes.io/enforce"

const namespaceKind = "Namespace"

// Namespace is synced down with a name that begins with the cluster key. The
// copy has the VirtualCluster's UID, which the guard checks, and is owned by
// the root namespace, so that it cannot outlive the tenant. Its pods have to
// meet a level of the Pod Security Standards: by default baseline, which
// forbids privileged pods, and access to the node's files, network or
// processes. The standards are those of the super cluster's own version, since
// they protect its nodes.
func Namespace() kinds.Flow {
	return kinds.Down[*corev1.Namespace]{
		Name:          namespaceKind,
		Object:        &corev1.Namespace{},
		List:          &corev1.NamespaceList{},
		Summary:       "down, under a name that begins with the tenant's key",
		ClusterScoped: true,
		SuperKey: func(t translate.Tenant, key client.ObjectKey) client.ObjectKey {
			return client.ObjectKey{Name: t.SuperNamespace(key.Name)}
		},
		TenantKey: func(super client.Object) client.ObjectKey {
			return client.ObjectKey{Name: translate.OriginOf(super).Namespace}
		},
		Desired: desiredNamespace,
		Merge:   mergeNamespace,
		Current: enforcesCurrent,
	}
}

func desiredNamespace(v kinds.View, _ *corev1.Namespace) (*corev1.Namespace, error) {
	annotations := map[string]string{names.VCUID: string(v.Tenant.UID)}
	if part := servicePart(v.Tenant); part != "" {
		annotations[names.ServiceCIDR] = part
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{enforceLabel: string(podSecurity(v.Tenant.Policy))},
		Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: namespaceKind, Name: v.Tenant.Key, UID: v.Tenant.RootUID,
		}},
	}}, nil
}

// podSecurity returns the level that the tenant's pods have to meet.
func podSecurity(policy tenancyv1alpha1.TenantPolicy) tenancyv1alpha1.PodSecurityLevel {
	return cmp.Or(policy.PodSecurity, tenancyv1alpha1.PodSecurityBaseline)
}

// servicePart returns the tenant's range of Service addresses, which the super
// cluster's policy reads from the namespace; empty if it has none.
func servicePart(t translate.Tenant) string {
	if !t.ServiceCIDR.IsValid() {
		return ""
	}
	return t.ServiceCIDR.String()
}

func mergeNamespace(super, desired *corev1.Namespace) {
	super.OwnerReferences = desired.OwnerReferences
	if _, wanted := desired.Annotations[names.ServiceCIDR]; !wanted {
		delete(super.Annotations, names.ServiceCIDR)
	}
}

// enforcesCurrent reports whether the super cluster's admission can find the
// current policy of the tenant in a namespace.
func enforcesCurrent(t translate.Tenant, super *corev1.Namespace) bool {
	return super.Labels[enforceLabel] == string(podSecurity(t.Policy)) && super.Annotations[names.ServiceCIDR] == servicePart(t)
}
