package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestPodFindsTheTenantsApiserver checks that clients in a pod find the
// tenant's apiserver, whatever the kubelet would set.
func TestPodFindsTheTenantsApiserver(t *testing.T) {
	elsewhere := view
	elsewhere.Tenant.Endpoint = "https://tenant.example.com:6443"
	unnumbered := view
	unnumbered.Tenant.Endpoint = "https://tenant.example.com"
	tests := map[string]struct {
		view             kinds.View
		host, port, addr string
	}{
		"at its service":          {addressed(), "10.104.16.1", "443", "tcp://10.104.16.1:443"},
		"at its endpoint":         {elsewhere, "tenant.example.com", "6443", "tcp://tenant.example.com:6443"},
		"at a URL without a port": {unnumbered, "tenant.example.com", "443", "tcp://tenant.example.com:443"},
		"without an endpoint":     {view, "", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod, err := desiredPod(tt.view, tenantPod())
			if err != nil {
				t.Fatal(err)
			}
			env := map[string]string{}
			for _, v := range pod.Spec.Containers[0].Env {
				env[v.Name] = v.Value
			}
			want := map[string]string{}
			if tt.host != "" {
				want = map[string]string{
					"KUBERNETES_SERVICE_HOST": tt.host, "KUBERNETES_SERVICE_PORT": tt.port, "KUBERNETES_SERVICE_PORT_HTTPS": tt.port,
					"KUBERNETES_PORT": tt.addr, "KUBERNETES_PORT_443_TCP": tt.addr, "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
					"KUBERNETES_PORT_443_TCP_PORT": tt.port, "KUBERNETES_PORT_443_TCP_ADDR": tt.host,
				}
			}
			if diff := cmp.Diff(want, env); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnEnvironmentWins checks that a container's own variables stay, and can
// refer to those that are added.
func TestOwnEnvironmentWins(t *testing.T) {
	own := []corev1.EnvVar{
		{Name: "URL", Value: "https://$(KUBERNETES_SERVICE_PORT)"},
		{Name: "KUBERNETES_SERVICE_HOST", Value: "proxy.example.com"},
	}
	tenant := tenantPod(func(p *corev1.Pod) { p.Spec.Containers[0].Env = own })
	pod, err := desiredPod(addressed(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	env := pod.Spec.Containers[0].Env
	if len(env) != 9 {
		t.Fatalf("%d variables: %v", len(env), env)
	}
	if diff := cmp.Diff(own, env[7:]); diff != "" {
		t.Errorf("the container's own are not the last (-want +got):\n%s", diff)
	}
}
