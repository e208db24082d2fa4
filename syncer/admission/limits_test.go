package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
)

// services is the kind of Services, with a part.
func services(t *testing.T) *kinds.Kind {
	t.Helper()
	return &kinds.Kind{
		Name: "Service", Resource: "services", GVK: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Object: &corev1.Service{},
		Down: &kinds.Down[client.Object]{Parts: []kinds.Part[client.Object]{{
			Resource: "services.nodeports", Amount: func(obj client.Object) int { return len(obj.(*corev1.Service).Spec.Ports) },
		}}},
	}
}

func TestLimits(t *testing.T) {
	of := func(ports int) client.Object {
		return &corev1.Service{Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, ports)}}
	}
	used := corev1.ResourceList{"count/services": resource.MustParse("2"), "services.nodeports": resource.MustParse("3")}
	most := limits.Limits{"services": 3, "services.nodeports": 5, limits.AnyResource: 1}
	for name, tc := range map[string]struct {
		own      limits.Limits
		obj, was client.Object
		want     string
	}{
		"room":                 {obj: of(2)},
		"too many parts":       {obj: of(3), want: "no more than 5 services.nodeports are allowed for this cluster"},
		"too many":             {own: limits.Limits{"services": 2}, obj: of(0), want: "no more than 2 services are allowed for this cluster"},
		"without a limit":      {own: limits.Limits{"services": -1, "services.nodeports": -1}, obj: of(9)},
		"a change":             {own: limits.Limits{"services": 0}, obj: of(2), was: of(1)},
		"a change to too many": {obj: of(3), was: of(2), want: "services.nodeports"},
		"a change to less":     {own: limits.Limits{"services.nodeports": 0}, obj: of(3), was: of(4)},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(services(t), plugins.Request{Object: tc.obj, Was: tc.was}, used, tc.own, most)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
