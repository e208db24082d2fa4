package resources

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestSelectInNetwork: a Service selects no pod of another network.
func TestSelectInNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant, translated, want map[string]string
		refused                  bool
	}{
		"no selector": {nil, nil, nil, false},
		"an application": {
			map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "web", networkv1.Label: "lab"}, false,
		},
		"its network": {
			map[string]string{networkv1.Label: "lab"}, map[string]string{networkv1.Label: "lab"}, map[string]string{networkv1.Label: "lab"}, false,
		},
		"its network, by a label that stays in the tenant": {
			map[string]string{networkv1.Label: "lab"}, map[string]string{names.Label(networkv1.Label): "lab"}, map[string]string{networkv1.Label: "lab"}, false,
		},
		"another network": {
			map[string]string{"app": "web", networkv1.Label: "office"}, map[string]string{"app": "web", networkv1.Label: "office"}, nil, true,
		},
		"another network, by a label that stays in the tenant": {
			map[string]string{networkv1.Label: "office"}, map[string]string{names.Label(networkv1.Label): "office"}, nil, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(selector map[string]string) *corev1.Service {
				return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: selector}}
			}
			desired := of(tc.translated)
			err := selectInNetwork(of(tc.tenant), desired, "lab")
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("refused is %t (%v), want %t", refused, err, tc.refused)
			}
			if !tc.refused && !maps.Equal(desired.Spec.Selector, tc.want) {
				t.Errorf("it selects %v, want %v", desired.Spec.Selector, tc.want)
			}
		})
	}
}
