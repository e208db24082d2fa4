package patch

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func BenchmarkApply(b *testing.B) {
	selector := fields("/spec/nodeSelector/pool", "self.metadata.labels.tier")
	for name, patches := range map[string][]tenancyv1alpha1.SyncPatch{
		"None":      nil,
		"WhenFalse": {when("tenant.name == 'red'", selector)},
		"OneField":  {selector},
		"TenFields": {selector, selector, selector, selector, selector, selector, selector, selector, selector, selector},
		"JSONPatch": {operations(`[{"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "gold"}}]`)},
	} {
		compiled := set(patches...)
		for kind, of := range map[string]struct{ object, self client.Object }{
			"Pod": {pod(), tenantPod()}, certificates: {certificate(), tenantPod()},
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					object := of.object.DeepCopyObject().(client.Object)
					if err := compiled.Apply(b.Context(), kind, object, of.self, blue); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	patches := []tenancyv1alpha1.SyncPatch{
		when("object.metadata.name != ''", fields("/spec/nodeSelector/pool", "self.metadata.labels.tier")),
	}
	b.ReportAllocs()
	for b.Loop() {
		Compile(patches)
	}
}
