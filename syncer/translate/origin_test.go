package translate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestOriginOf(t *testing.T) {
	tests := map[string]struct {
		obj  client.Object
		want Origin
	}{
		"an object without a tenant": {&corev1.Secret{}, Origin{}},
		"labels are ignored": {
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Cluster: "key"}}}, Origin{},
		},
		"a copy of a namespaced object": {
			copyOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", UID: "s-uid"}}),
			Origin{Cluster: "team-71a1c3-blue", UID: "s-uid", Namespace: "default"},
		},
		"a copy of a namespace": {
			copyOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "ns-uid"}}),
			Origin{Cluster: "team-71a1c3-blue", UID: "ns-uid", Namespace: "default"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := OriginOf(tt.obj); got != tt.want {
				t.Errorf("OriginOf = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// copyOf returns an object with the metadata of a copy of blue's object.
func copyOf(tenant client.Object) client.Object {
	meta := blue.Down("ConfigMap", tenant, types.NamespacedName{Namespace: "anywhere", Name: "anything"})
	return &corev1.ConfigMap{ObjectMeta: meta}
}
