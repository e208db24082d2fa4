package chart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAgent: the programs that lead tenants' apiservers to vn-agent have its
// address and its authorities, or neither.
func TestAgent(t *testing.T) {
	args := []string{"--vn-agent-address=vn-agent.vc-system.svc:10550", "--vn-agent-ca-file=/etc/vn-agent-ca/ca.crt"}
	for values, want := range map[string]bool{
		"vnAgent: {enabled: true, tlsSecretName: agent, caSecretName: agent-ca}": true,
		"vnAgent: {enabled: true, tlsSecretName: agent}":                         false,
		"vnAgent: {caSecretName: agent-ca}":                                      false,
	} {
		all := workloads(t, mustRender(t, values))
		for _, name := range []string{"vc-manager", "vc-host"} {
			pod := all[name].template.Spec
			for _, arg := range args {
				if slices.Contains(pod.Containers[0].Args, arg) != want {
					t.Errorf("%s: %s has %v, want %s: %t", values, name, pod.Containers[0].Args, arg, want)
				}
			}
			mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/vn-agent-ca" })
			there := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "agent-ca" })
			if mounted != want || there != want {
				t.Errorf("%s: %s has the authorities: %t, want %t", values, name, mounted && there, want)
			}
		}
	}
}
