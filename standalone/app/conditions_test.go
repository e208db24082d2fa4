package app

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsServed(t *testing.T) {
	pool := []string{"10.104.0.0/13"}
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: status}}
	}
	for name, c := range map[string]struct {
		ranges     []string
		conditions []metav1.Condition
		want       bool
	}{
		"ready":                   {pool, ready(metav1.ConditionTrue), true},
		"not ready":               {pool, ready(metav1.ConditionFalse), false},
		"not observed yet":        {pool, nil, false},
		"ready with other ranges": {[]string{"10.96.0.0/16"}, ready(metav1.ConditionTrue), false},
		"ready with one more":     {append(pool, "fd00::/112"), ready(metav1.ConditionTrue), false},
	} {
		t.Run(name, func(t *testing.T) {
			cidr := &networkingv1.ServiceCIDR{}
			cidr.Spec.CIDRs, cidr.Status.Conditions = c.ranges, c.conditions
			if got := isServed(cidr, pool); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestIsEstablished(t *testing.T) {
	type conditions = []apiextensionsv1.CustomResourceDefinitionCondition
	const names, established = apiextensionsv1.NamesAccepted, apiextensionsv1.Established
	for name, c := range map[string]struct {
		conditions conditions
		want       bool
	}{
		"nothing yet":     {nil, false},
		"names only":      {conditions{{Type: names, Status: apiextensionsv1.ConditionTrue}}, false},
		"established":     {conditions{{Type: names, Status: apiextensionsv1.ConditionTrue}, {Type: established, Status: apiextensionsv1.ConditionTrue}}, true},
		"not established": {conditions{{Type: established, Status: apiextensionsv1.ConditionFalse}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			definition.Status.Conditions = c.conditions
			if got := isEstablished(definition); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
