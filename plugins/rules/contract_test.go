package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

// TestContract checks the contract of validators, for objects that are allowed
// and rejected.
func TestContract(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{
		"object.spec.containers.size() == 1 && used['pods'].isLessThan(hard['pods'])",
		"oldObject != null",
		"false",
	} {
		first, second := virtualCluster(ruleOf(expression)), virtualCluster(ruleOf(expression))
		blue := plugins.Tenant{Key: "blue", Name: "blue", Namespace: "team", UID: "blue-uid"}
		second.Name, second.UID, second.Status.ClusterNamespace = blue.Name, blue.UID, blue.Key
		r := podRequest()
		t.Run(expression, func(t *testing.T) {
			plugintest.Run(t, plugintest.Case{
				Registration: Registration(counted, ""),
				Cache:        &informertest.FakeInformers{Scheme: scheme},
				Client:       clientOf(t, first, second),
				Tenants:      [2]plugins.Tenant{red, blue},
				Object:       r.Object,
				Kind:         r.Kind,
			})
		})
	}
}
