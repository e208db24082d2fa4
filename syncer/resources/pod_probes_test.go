package resources

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestHostsOfProbes(t *testing.T) {
	handlers := map[string]corev1.LifecycleHandler{
		"httpGet":   {HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254"}},
		"tcpSocket": {TCPSocket: &corev1.TCPSocketAction{Host: "127.0.0.1"}},
	}
	probe := func(h corev1.LifecycleHandler) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}}
	}
	places := map[string]func(c *corev1.Container, h corev1.LifecycleHandler){
		"livenessProbe":       func(c *corev1.Container, h corev1.LifecycleHandler) { c.LivenessProbe = probe(h) },
		"readinessProbe":      func(c *corev1.Container, h corev1.LifecycleHandler) { c.ReadinessProbe = probe(h) },
		"startupProbe":        func(c *corev1.Container, h corev1.LifecycleHandler) { c.StartupProbe = probe(h) },
		"lifecycle.postStart": func(c *corev1.Container, h corev1.LifecycleHandler) { c.Lifecycle = &corev1.Lifecycle{PostStart: &h} },
		"lifecycle.preStop":   func(c *corev1.Container, h corev1.LifecycleHandler) { c.Lifecycle = &corev1.Lifecycle{PreStop: &h} },
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for place, put := range places {
		for action, handler := range handlers {
			for _, list := range []string{"containers", "initContainers"} {
				path := "spec." + list + "[0]." + place + "." + action + ".host"
				pod := tenantPod(func(p *corev1.Pod) {
					p.Spec.InitContainers = []corev1.Container{{Name: "first"}}
					c := &p.Spec.Containers[0]
					if list == "initContainers" {
						c = &p.Spec.InitContainers[0]
					}
					put(c, handler)
				})
				if err := k.Admit(view, pod); err == nil || !strings.Contains(err.Error(), path+": Forbidden") {
					t.Errorf("%s: rejected because of %v", path, err)
				}
				if err := k.Admit(under(tenancyv1alpha1.TenantPolicy{AllowProbeHosts: true}), pod); err != nil {
					t.Errorf("%s, allowed: %v", path, err)
				}
			}
		}
	}
}

// handlerFates decides for each type of probe whether it can name a host.
var handlerFates = map[string]string{
	"Exec": "runs in the container", "HTTPGet": "has a host", "TCPSocket": "has a host", "GRPC": "reaches the pod alone",
	"Sleep": "does nothing",
}

// TestEveryHandlerIsDecided fails for a new type of probe, or a new field of
// one, until it is decided.
func TestEveryHandlerIsDecided(t *testing.T) {
	for _, handler := range []reflect.Type{reflect.TypeFor[corev1.ProbeHandler](), reflect.TypeFor[corev1.LifecycleHandler]()} {
		for f := range handler.Fields() {
			if handlerFates[f.Name] == "" {
				t.Errorf("%s.%s is not decided", handler, f.Name)
			}
		}
	}
	for action, fields := range map[reflect.Type]int{
		reflect.TypeFor[corev1.HTTPGetAction](): 5, reflect.TypeFor[corev1.TCPSocketAction](): 2, reflect.TypeFor[corev1.GRPCAction](): 2,
		reflect.TypeFor[corev1.SleepAction](): 1,
	} {
		if action.NumField() != fields {
			t.Errorf("%s has %d fields, and %d are decided", action, action.NumField(), fields)
		}
	}
}
