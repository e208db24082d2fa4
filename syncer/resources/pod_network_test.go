package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestAttachPod(t *testing.T) {
	for name, tc := range map[string]struct {
		nic  *string
		want map[string]string
		err  string
	}{
		"without a NIC": {nil, map[string]string{networkv1.ReadinessAnnotation: "false"}, ""},
		"with a NIC": {
			new(` {"ip": "192.0.2.7"}`),
			map[string]string{networkv1.ReadinessAnnotation: "false", networkv1.NICAnnotation: `{"ip":"192.0.2.7"}`}, "",
		},
		"no JSON": {new("eth0"), nil, "metadata.annotations[arktos.futurewei.com/nic]: it must be one JSON object"},
		"empty":   {new(""), nil, "one JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(func(p *corev1.Pod) {
				if tc.nic != nil {
					p.Annotations = map[string]string{networkv1.NICAnnotation: *tc.nic}
				}
			})
			copied := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: gates("example.com/own")}}
			err := attachPod(tenant, copied)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, copied.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(gates("example.com/own", networkv1.ReadinessGate), copied.Spec.SchedulingGates); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{networkv1.Finalizer}, copied.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAttachPodRejects: pods that could not be held back.
func TestAttachPodRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"a gate of the platform": {corev1.PodSpec{SchedulingGates: gates("a", networkv1.ReadinessGate)}, "spec.schedulingGates: remove arktos"},
		"a node":                 {corev1.PodSpec{NodeName: "node-1"}, "spec.nodeName: remove it"},
	} {
		if err := attachPod(tenantPod(), &corev1.Pod{Spec: tc.spec}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// TestAReadinessGateStays: a tenant that changes its pod does not remove it.
func TestAReadinessGateStays(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, ForNetworks([]kinds.Flow{Pod()}, Outside{})[0])
	copied := down(t, k, tenantPod(func(p *corev1.Pod) { p.Spec.SchedulingGates = gates("a") }))
	if err := k.Attach(tenantPod(), copied); err != nil {
		t.Fatal(err)
	}
	k.Merge(copied, down(t, k, tenantPod()))
	if diff := cmp.Diff(gates(networkv1.ReadinessGate), copied.Spec.SchedulingGates); diff != "" {
		t.Errorf("after the tenant has removed its gates (-want +got):\n%s", diff)
	}
}
