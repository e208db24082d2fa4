package resources

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/podsecurity"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

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
	maps.Copy(annotations, serviceParts(v.Tenant))
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{podsecurity.Enforce: podsecurity.Level(v.Tenant.Policy)},
		Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: namespaceKind, Name: v.Tenant.Key, UID: v.Tenant.RootUID,
		}},
	}}, nil
}

// serviceParts returns the annotations with the tenant's ranges of Service
// addresses, which the super cluster's policy reads from the namespace.
func serviceParts(t translate.Tenant) map[string]string {
	parts := map[string]string{}
	for key, cidr := range map[string]netip.Prefix{names.ServiceCIDR: t.ServiceCIDR, names.SecondaryServiceCIDR: t.SecondaryServiceCIDR} {
		if cidr.IsValid() {
			parts[key] = cidr.String()
		}
	}
	return parts
}

func mergeNamespace(super, desired *corev1.Namespace) {
	super.OwnerReferences = desired.OwnerReferences
	for _, key := range []string{names.ServiceCIDR, names.SecondaryServiceCIDR} {
		if _, wanted := desired.Annotations[key]; !wanted {
			delete(super.Annotations, key)
		}
	}
}

// enforcesCurrent reports whether the super cluster's admission can find the
// current policy of the tenant in a namespace.
func enforcesCurrent(t translate.Tenant, super *corev1.Namespace) bool {
	parts := serviceParts(t)
	return super.Labels[podsecurity.Enforce] == podsecurity.Level(t.Policy) &&
		super.Annotations[names.ServiceCIDR] == parts[names.ServiceCIDR] &&
		super.Annotations[names.SecondaryServiceCIDR] == parts[names.SecondaryServiceCIDR]
}
