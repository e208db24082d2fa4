package sharedcrds

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestLabel(t *testing.T) {
	const contract = "cluster.x-k8s.io/v1beta2"
	type labels = map[string]string
	for name, c := range map[string]struct{ tenant, system, want labels }{
		"of operators":    {nil, labels{contract: "v1"}, labels{contract: "v1"}},
		"changed":         {labels{contract: "v1"}, labels{contract: "v1_v2"}, labels{contract: "v1_v2"}},
		"of the tenant":   {labels{"mine": "yes"}, labels{contract: "v1"}, labels{"mine": "yes", contract: "v1"}},
		"none":            {labels{"mine": "yes"}, nil, labels{"mine": "yes"}},
		"that forces":     {nil, labels{names.CRDSharingPolicy: names.Forced}, nil},
		"of the platform": {nil, labels{names.VCName: "red"}, nil},
		"the mark":        {labels{names.SharedCRD: "mark"}, labels{names.SharedCRD: "other"}, labels{names.SharedCRD: "mark"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, system := widgets("v1"), widgets("v1")
			d.Labels, system.Labels = c.tenant, c.system
			label(d, system)
			if diff := cmp.Diff(c.want, d.Labels); diff != "" {
				t.Error(diff)
			}
		})
	}
}
