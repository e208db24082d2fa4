package hosted

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestRefuseChangeOfSharedCRDs(t *testing.T) {
	type change = func(*apiextensions.CustomResourceDefinition)
	// definition returns a CRD that the platform shares if it has a mark.
	definition := func(mark, fixed string, changes ...change) *apiextensions.CustomResourceDefinition {
		d := &apiextensions.CustomResourceDefinition{}
		d.Spec.Names.Kind = "Widget"
		d.Status.StoredVersions = []string{"v1", "v2"}
		if mark != "" {
			metav1.SetMetaDataLabel(&d.ObjectMeta, names.SharedCRD, mark)
		}
		if fixed != "" {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.FixedCRD, fixed)
		}
		for _, f := range changes {
			f(d)
		}
		return d
	}
	spec := func(d *apiextensions.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"w"} }
	trim := func(d *apiextensions.CustomResourceDefinition) { d.Status.StoredVersions = []string{"v2"} }
	note := func(d *apiextensions.CustomResourceDefinition) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "note", "x")
	}
	owned := func(d *apiextensions.CustomResourceDefinition) {
		d.OwnerReferences = []metav1.OwnerReference{{Name: "owner"}}
	}
	tests := map[string]struct {
		was, now *apiextensions.CustomResourceDefinition
		reason   string // empty if it is not refused
	}{
		"the tenant's own":                         {definition("", ""), definition("", "", spec, trim, owned), ""},
		"deletion of the tenant's own":             {definition("", ""), nil, ""},
		"a forged mark":                            {definition("", ""), definition("m", ""), "reserved"},
		"a forged annotation":                      {definition("", ""), definition("", names.Forced), "reserved"},
		"a note":                                   {definition("m", ""), definition("m", "", note), ""},
		"another spec":                             {definition("m", ""), definition("m", "", spec), "removing its label"},
		"other stored versions":                    {definition("m", ""), definition("m", "", trim), "removing its label"},
		"an owner":                                 {definition("m", ""), definition("m", "", owned), "removing its label"},
		"another mark":                             {definition("m", ""), definition("n", ""), "removing its label"},
		"deletion":                                 {definition("m", ""), nil, "removing its label"},
		"adoption":                                 {definition("m", ""), definition("", ""), ""},
		"adoption with a change":                   {definition("m", ""), definition("", "", spec), "removing its label"},
		"adoption of a forced one":                 {definition("m", names.Forced), definition("", ""), "forces"},
		"adoption by its annotation first":         {definition("m", names.Forced), definition("m", ""), "forces"},
		"adoption of one that has replaced one":    {definition("m", names.Replaced), definition("", ""), names.CRDPolicy + "=LocalCRDFirst"},
		"a note on one that has replaced one":      {definition("m", names.Replaced), definition("m", names.Replaced, note), ""},
		"deletion of one that has replaced one":    {definition("m", names.Replaced), nil, "in the place of your own"},
		"an annotation of a later release":         {definition("m", "later"), definition("", ""), "the platform shares"},
		"removal of that of a CRD without a mark":  {definition("", names.Forced), definition("", ""), "forces"},
		"a forced one of which the mark is forged": {definition("m", names.Forced), definition("n", names.Forced), "forces"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			switch err := refuseChange(tt.was, tt.now); {
			case tt.reason == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)):
				t.Errorf("refused by %v, want %q", err, tt.reason)
			}
		})
	}
}
