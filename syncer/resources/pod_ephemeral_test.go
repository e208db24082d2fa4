package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestEphemeralContainersGoDown(t *testing.T) {
	debug := func(name, image string, env ...corev1.EnvVar) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: image, Env: env, Stdin: true},
			TargetContainerName:      "app",
		}
	}
	type containers = []corev1.EphemeralContainer
	tests := map[string]struct{ tenant, super, want containers }{
		"one is added": {containers{debug("a", "busybox")}, nil, containers{debug("a", "busybox")}},
		"another is added, and what is there stays as it is": {
			containers{debug("a", "busybox"), debug("b", "busybox")},
			containers{debug("injected", "probe"), debug("a", "registry.example.com/busybox")},
			containers{debug("injected", "probe"), debug("a", "registry.example.com/busybox"), debug("b", "busybox")},
		},
		"none is removed": {nil, containers{debug("a", "busybox")}, containers{debug("a", "busybox")}},
		"its fields are read from the copy's annotations": {
			containers{debug("a", "busybox",
				from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.namespace")}),
				from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: configMap(rootCA), Key: "ca.crt"}}),
			)}, nil,
			containers{debug("a", "busybox",
				from(corev1.EnvVarSource{FieldRef: fieldRef(namespaceNote)}),
				from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: configMap(movedRootCA), Key: "ca.crt"}}),
			)},
		},
	}
	sub := subresource(t, "ephemeralcontainers")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(func(p *corev1.Pod) { p.Spec.EphemeralContainers = tt.tenant })
			super := tenantPod(func(p *corev1.Pod) { p.ObjectMeta, p.Spec.EphemeralContainers = superMeta("web"), tt.super })
			want := tenantPod(func(p *corev1.Pod) { p.ObjectMeta, p.Spec.EphemeralContainers = superMeta("web"), tt.want })
			sub.Merge(view, super, tenant)
			if diff := cmp.Diff(want, super); diff != "" {
				t.Errorf("the copy (-want +got):\n%s", diff)
			}
			sub.Merge(view, super, tenant)
			unchanged(t, "the copy, by a second merge,", want, super)
		})
	}
}

func TestEachEphemeralContainer(t *testing.T) {
	with := func(names ...string) *corev1.Pod {
		return tenantPod(func(p *corev1.Pod) {
			for _, name := range names {
				p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
					corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Stdin: true}})
			}
		})
	}
	tests := map[string]struct {
		super, merged *corev1.Pod
		want          []*corev1.Pod
	}{
		"none":                          {with("a"), with("a"), nil},
		"one":                           {with(), with("a"), []*corev1.Pod{with("a")}},
		"two, beside one that is there": {with("a"), with("a", "b", "c"), []*corev1.Pod{with("a", "b"), with("a", "c")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, eachEphemeralContainer(tt.super, tt.merged)); diff != "" {
				t.Errorf("the pods (-want +got):\n%s", diff)
			}
		})
	}
}
