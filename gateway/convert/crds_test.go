package convert

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestTooManyCRDs(t *testing.T) {
	const key = "team-1a2b3c-red"
	crds := resources.New()
	for i := range MaxCRDs {
		crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: key}}}
		crd.Spec.Group, crd.Spec.Names.Plural = names.ConvertedGroup(key)+"example.com", fmt.Sprintf("things%d", i)
		crds.Set(crd)
	}
	for name, tt := range map[string]struct {
		tenant, verb, crd string
		applies, want     bool
	}{
		"one more":          {key, verbCreate, "", false, true},
		"one more, applied": {key, verbPatch, "widgets.example.com", true, true},
		"an existing one":   {key, verbPatch, "things7.example.com", true, false},
		"a patch":           {key, verbPatch, "widgets.example.com", false, false},
		"of another tenant": {"team-1a2b3c-blue", verbCreate, "", false, false},
		"a deletion":        {key, verbDelete, "things7.example.com", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &call{
				Handler: &Handler{Tenant: tt.tenant, CRDs: crds}, info: &request.RequestInfo{Verb: tt.verb}, name: tt.crd, applies: tt.applies,
				kind: kinds.Find("apiextensions.k8s.io", "customresourcedefinitions"),
			}
			if err := c.checkCRDs(); apierrors.IsForbidden(err) != tt.want {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestTooManyChangesOfCRDs(t *testing.T) {
	const key = "team-1a2b3c-red"
	churn := resources.NewChurn()
	crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: key}}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	for range resources.ChurnBurst + 2 { // two were under way
		churn.Handler().OnDelete(crd)
	}
	for name, tt := range map[string]struct {
		tenant, verb, resource string
		want                   bool
	}{
		"a deletion":          {key, verbDelete, "customresourcedefinitions", true},
		"a deletion of all":   {key, verbDeleteCollection, "customresourcedefinitions", true},
		"an update":           {key, verbUpdate, "customresourcedefinitions", true},
		"a patch":             {key, verbPatch, "customresourcedefinitions", true},
		"a creation":          {key, verbCreate, "customresourcedefinitions", false},
		"a list":              {key, verbList, "customresourcedefinitions", false},
		"of another tenant":   {"team-1a2b3c-blue", verbDelete, "customresourcedefinitions", false},
		"of another resource": {key, verbDelete, "apiservices", false},
	} {
		t.Run(name, func(t *testing.T) {
			group := "apiextensions.k8s.io"
			if tt.resource == "apiservices" {
				group = "apiregistration.k8s.io"
			}
			c := &call{
				Handler: &Handler{Tenant: tt.tenant, Churn: churn}, info: &request.RequestInfo{Verb: tt.verb}, kind: kinds.Find(group, tt.resource),
			}
			err := c.checkChurn()
			if seconds, suggested := apierrors.SuggestsClientDelay(err); apierrors.IsTooManyRequests(err) != tt.want || suggested != tt.want || tt.want && seconds != 30 {
				t.Errorf("got error %v, to be tried again in %d seconds", err, seconds)
			}
		})
	}
}
