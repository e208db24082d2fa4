package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

// TestContract: the validator does what a syncer relies on, and is built
// outside of the project (QV-3, QV-15).
func TestContract(t *testing.T) {
	plugintest.Run(t, plugintest.Case{
		Registration: registration(),
		Tenants:      [2]plugins.Tenant{{Key: "red"}, {Key: "blue"}},
		Object:       &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red-shop", Name: "web"}},
		Kind:         corev1.SchemeGroupVersion.WithKind("Pod"),
	})
}

func TestPodsNeedAnOwner(t *testing.T) {
	v := &owned{}
	pod := &corev1.Pod{}
	if v.Validate(t.Context(), plugins.Request{Object: pod}) == nil {
		t.Error("a pod without an owner is allowed")
	}
	pod.Labels = map[string]string{"example.com/owner": "team"}
	if err := v.Validate(t.Context(), plugins.Request{Object: pod}); err != nil {
		t.Errorf("a pod with an owner: %v", err)
	}
}
