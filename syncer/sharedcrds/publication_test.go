package sharedcrds

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestNewPublication(t *testing.T) {
	gold, plain := labels.Set{"tier": "gold"}, labels.Set{}
	tests := map[string]struct {
		applicable, policy string
		deleted            bool
		shared, invalid    bool
		gold, plain        System
	}{
		"no annotation":                   {},
		"all":                             {applicable: "*", shared: true, gold: System{InRange: true}, plain: System{InRange: true}},
		"some":                            {applicable: "tier=gold", shared: true, gold: System{InRange: true}},
		"forced reaches all":              {policy: "forced", shared: true, gold: System{Forced: true}, plain: System{Forced: true}},
		"forced, some in range":           {applicable: "tier=gold", policy: "forced", shared: true, gold: System{true, true}, plain: System{Forced: true}},
		"another policy forces no tenant": {policy: "optional"},
		"an invalid selector":             {applicable: "=,=", shared: true, invalid: true},
		"being deleted":                   {applicable: "*", policy: "forced", deleted: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
			crd.Annotations = map[string]string{names.ApplicableRange: tt.applicable}
			crd.Labels = map[string]string{names.CRDSharingPolicy: tt.policy}
			if tt.deleted {
				crd.DeletionTimestamp = new(metav1.Now())
			}
			p, err := newPublication(crd)
			if (p != nil) != tt.shared || (err != nil) != tt.invalid {
				t.Fatalf("publication %+v, error %v", p, err)
			}
			if p != nil && (p.system(gold) != tt.gold || p.system(plain) != tt.plain) {
				t.Errorf("gold: %+v, plain: %+v", p.system(gold), p.system(plain))
			}
		})
	}
}

func TestReachingIsBounded(t *testing.T) {
	var all []*publication
	for i := range MaxCRDs + 3 {
		all = append(all, &publication{
			name: fmt.Sprintf("w%03d", i), created: metav1.NewTime(time.Unix(int64(i), 0)),
			applicable: labels.Everything(), forced: i == MaxCRDs+2,
		})
	}
	all = append(all, &publication{name: "elsewhere", applicable: labels.Nothing()})
	within, beyond := reaching(all, labels.Set{})
	if len(within) != MaxCRDs || beyond != 3 {
		t.Errorf("%d within, %d beyond", len(within), beyond)
	}
	if within[fmt.Sprintf("w%03d", MaxCRDs+2)] == nil || within["w000"] == nil || within[fmt.Sprintf("w%03d", MaxCRDs-1)] != nil {
		t.Errorf("not the forced and the oldest ones: %v", within)
	}
}
