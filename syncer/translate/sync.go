package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Mode returns which objects of a kind are synced, according to the
// VirtualCluster; empty for the default of the kind.
func (t Tenant) Mode(kind string) tenancyv1alpha1.SyncMode {
	for _, k := range t.Sync.Kinds {
		if string(k.Kind) == kind {
			return k.Mode
		}
	}
	return ""
}

// Offers reports whether an object of the super cluster, of a kind that tenants
// choose from, is offered to this tenant: to all tenants by its label, or by
// the VirtualCluster.
func (t Tenant) Offers(kind string, super client.Object) bool {
	if super.GetLabels()[names.Public] == "true" {
		return true
	}
	for _, p := range t.Sync.Publish {
		if string(p.Kind) == kind {
			return slices.Contains(p.Names, super.GetName())
		}
	}
	return false
}

// ShowsNode reports whether the tenant sees a node of the super cluster with
// these labels even if none of its pods runs there.
func (t Tenant) ShowsNode(superLabels map[string]string) bool {
	return t.Sync.Nodes == tenancyv1alpha1.SyncAll && labels.SelectorFromSet(t.Sync.NodeSelector).Matches(labels.Set(superLabels))
}

// labelsOf and annotationsOf return the patterns of an entry of
// spec.sync.metadata.
func labelsOf(m *tenancyv1alpha1.MetadataSync) []string      { return m.Labels }
func annotationsOf(m *tenancyv1alpha1.MetadataSync) []string { return m.Annotations }

// allows reports whether the VirtualCluster allows a key on copies of a kind.
func (t Tenant) allows(kind, key string, patterns func(*tenancyv1alpha1.MetadataSync) []string) bool {
	for i := range t.Sync.Metadata {
		m := &t.Sync.Metadata[i]
		if slices.Contains(m.Kinds, kind) && matchesAny(patterns(m), key) {
			return true
		}
	}
	return false
}
