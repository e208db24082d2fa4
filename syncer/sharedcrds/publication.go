package sharedcrds

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// MaxCRDs is the maximum number of CRDs that are shared with a tenant: several
// times what cert-manager and Cluster API with a provider have. An apiserver takes
// some 40 ms of CPU and 1 to 5 MiB of memory for each.
const MaxCRDs = 100

// publication is a CRD of the super cluster that is shared.
type publication struct {
	name, version string // the resource version
	created       metav1.Time
	// applicable selects tenants by the labels of their VirtualClusters.
	applicable labels.Selector
	forced     bool
	// definition is the CRD itself, which is shared.
	definition *crd
}

// newPublication returns the publication of a CRD, of which the metadata is
// sufficient; nil if the CRD is not shared.
func newPublication(crd metav1.Object) (*publication, error) {
	p := &publication{
		name: crd.GetName(), version: crd.GetResourceVersion(), created: crd.GetCreationTimestamp(),
		applicable: labels.Nothing(), forced: crd.GetLabels()[names.CRDSharingPolicy] == names.Forced,
	}
	applicable := crd.GetAnnotations()[names.ApplicableRange]
	if crd.GetDeletionTimestamp() != nil || applicable == "" && !p.forced {
		return nil, nil
	}
	switch applicable {
	case "":
	case names.AllTenants:
		p.applicable = labels.Everything()
	default:
		selector, err := labels.Parse(applicable)
		if err != nil {
			return p, fmt.Errorf("parse annotation %s of CustomResourceDefinition %s: %w", names.ApplicableRange, p.name, err)
		}
		p.applicable = selector
	}
	return p, nil
}

// system returns what a lookup of a tenant needs to know.
func (p *publication) system(tenant labels.Set) System {
	return System{InRange: p.applicable.Matches(tenant), Forced: p.forced}
}

// reaching returns the publications that a tenant with these labels may use, at
// most MaxCRDs, and the number of the others. Forced ones have precedence, then
// older ones, so that a new one does not displace one that is in use.
func reaching(all []*publication, tenant labels.Set) (within map[string]*publication, beyond int) {
	reached := slices.DeleteFunc(slices.Clone(all), func(p *publication) bool { return p.system(tenant) == System{} })
	slices.SortFunc(reached, func(a, b *publication) int {
		return cmp.Or(rank(a)-rank(b), a.created.Compare(b.created.Time), cmp.Compare(a.name, b.name))
	})
	within = map[string]*publication{}
	for _, p := range reached[:min(len(reached), MaxCRDs)] {
		within[p.name] = p
	}
	return within, len(reached) - len(within)
}

// rank orders forced publications before others.
func rank(p *publication) int {
	if p.forced {
		return 0
	}
	return 1
}
