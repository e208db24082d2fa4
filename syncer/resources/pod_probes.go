package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// admitProbes rejects probes and lifecycle hooks with a host: the kubelet
// connects to it from the network of its node, outside of all policies for
// pods, and reports the answer in events. Ephemeral containers have neither
// (Pod validation).
func admitProbes(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) error {
	if policy.AllowProbeHosts {
		return nil
	}
	for path, c := range containersAt(spec) {
		if why := admitContainerProbes(path, c); why != nil {
			return why
		}
	}
	return nil
}

func admitContainerProbes(path *field.Path, c *corev1.Container) error {
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if p.probe == nil {
			continue
		}
		if why := admitProbeHost(path.Child(p.name), p.probe.HTTPGet, p.probe.TCPSocket); why != nil {
			return why
		}
	}
	if c.Lifecycle == nil {
		return nil
	}
	for _, hook := range []struct {
		name    string
		handler *corev1.LifecycleHandler
	}{{"postStart", c.Lifecycle.PostStart}, {"preStop", c.Lifecycle.PreStop}} {
		if hook.handler == nil {
			continue
		}
		if why := admitProbeHost(path.Child("lifecycle", hook.name), hook.handler.HTTPGet, hook.handler.TCPSocket); why != nil {
			return why
		}
	}
	return nil
}

func admitProbeHost(path *field.Path, http *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction) error {
	const why = "the kubelet may only connect to the pod; omit the host"
	switch {
	case http != nil && http.Host != "":
		return field.Forbidden(path.Child("httpGet", "host"), why)
	case tcp != nil && tcp.Host != "":
		return field.Forbidden(path.Child("tcpSocket", "host"), why)
	}
	return nil
}
