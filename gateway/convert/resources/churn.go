package resources

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/pace"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	// ChurnBurst is how many changes of what its CRDs serve a tenant may make at
	// once.
	ChurnBurst = 100
	// ChurnPerMinute is how many it may make on average.
	ChurnPerMinute = 6
)

// Churn bounds how often tenants change which resources the super cluster serves:
// after each change, controllers of the super cluster that work for all tenants
// discover all resources again, and wait until they can list them. A deletion
// counts, and so does another set of versions. A new CRD does not: a tenant cannot
// have many without deletions.
//
// What counts are changes that the super cluster shows, so that all gateways count
// those through each of them. Requests at the same time can exceed the limit, and
// the tenant waits for longer then.
type Churn struct{ changes *pace.Tenants }

// NewChurn returns a Churn without any changes.
func NewChurn() *Churn {
	return &Churn{pace.NewTenants(ChurnBurst, rate.Every(time.Minute/ChurnPerMinute))}
}

// Wait returns for how long a tenant has to wait before its next change; 0 if it may
// make one now.
func (c *Churn) Wait(clusterKey string) time.Duration { return c.changes.Wait(clusterKey) }

// Handler returns what an informer calls that watches the CRDs with the label
// names.Converted.
func (c *Churn) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, updated any) { c.changed(old.(*CRD), served(updated.(*CRD))) },
		DeleteFunc: func(obj any) {
			if crd, ok := lastknown.Of[*CRD](obj); ok {
				c.changed(crd, nil)
			}
		},
	}
}

// changed counts a change of a CRD that served something.
func (c *Churn) changed(from *CRD, to sets.Set[string]) {
	if before := served(from); len(before) > 0 && !before.Equal(to) {
		c.changes.Take(from.Labels[names.Converted], 1)
	}
}

// served returns the resources that the super cluster serves for a CRD, by version.
func served(crd *CRD) sets.Set[string] {
	all := sets.New[string]()
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating) {
		return all
	}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			all.Insert(version.Name + "/" + crd.Status.AcceptedNames.Plural)
		}
	}
	return all
}
