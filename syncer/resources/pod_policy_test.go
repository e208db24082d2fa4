package resources

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// under returns the view of blue with a policy.
func under(policy tenancyv1alpha1.TenantPolicy) kinds.View {
	v := view
	v.Tenant.Policy = policy
	return v
}

// withPort adds a host port to the app.
func withPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: port}}
	}
}

func TestPodsAreAdmitted(t *testing.T) {
	hostPath := func(p *corev1.Pod) {
		p.Spec.Volumes = volumes(
			corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}},
		)
	}
	sources := func(all ...corev1.VolumeProjection) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = volumes(
				corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: all}},
			)
		}
	}
	bundle := func(optional *bool) corev1.VolumeProjection {
		return corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Optional: optional}}
	}
	ports := tenancyv1alpha1.TenantPolicy{HostPorts: []tenancyv1alpha1.PortRange{{Min: 80, Max: 90}, {Min: 8080, Max: 8080}}}
	privileged := tenancyv1alpha1.TenantPolicy{PodSecurity: tenancyv1alpha1.PodSecurityPrivileged}
	tests := map[string]struct {
		policy tenancyv1alpha1.TenantPolicy
		pod    func(*corev1.Pod)
		why    string // empty if admitted
	}{
		"a plain pod": {pod: func(*corev1.Pod) {}},

		"a node": {pod: func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }, why: "spec.nodeName: Forbidden"},
		"a node, and a scheduled pod": {pod: func(p *corev1.Pod) {
			p.Spec.NodeName = "node-1"
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		}, why: "spec.nodeName: Forbidden"},
		"a node, allowed": {tenancyv1alpha1.TenantPolicy{AllowNodeName: true}, func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }, ""},

		"its node's network":           {pod: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, why: "spec.hostNetwork: Forbidden"},
		"its node's processes":         {pod: func(p *corev1.Pod) { p.Spec.HostPID = true }, why: "spec.hostPID: Forbidden"},
		"its node's IPC":               {pod: func(p *corev1.Pod) { p.Spec.HostIPC = true }, why: "spec.hostIPC: Forbidden"},
		"its node's IPC, all the more": {privileged, func(p *corev1.Pod) { p.Spec.HostIPC = true }, "spec.hostIPC: Forbidden"},
		"its node's namespaces, allowed": {tenancyv1alpha1.TenantPolicy{AllowHostNamespaces: true}, func(p *corev1.Pod) {
			p.Spec.HostNetwork, p.Spec.HostPID, p.Spec.HostIPC = true, true, true
		}, ""},

		"a certificate": {
			pod: sources(corev1.VolumeProjection{}, corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}),
			why: "spec.volumes[1].projected.sources[1].podCertificate: Forbidden",
		},
		"a bundle of authorities":       {pod: sources(bundle(nil)), why: "spec.volumes[1].projected.sources[0].clusterTrustBundle: Forbidden"},
		"a bundle, if there is one":     {pod: sources(bundle(new(true)))},
		"a bundle that is not optional": {pod: sources(bundle(new(false))), why: "clusterTrustBundle: Forbidden"},

		"a directory of its node":                          {pod: hostPath, why: "spec.volumes[1].hostPath: Forbidden"},
		"a directory of its node, under another flag":      {tenancyv1alpha1.TenantPolicy{AllowHostNamespaces: true}, hostPath, "spec.volumes[1].hostPath: Forbidden"},
		"a directory of its node, at the privileged level": {privileged, hostPath, "spec.volumes[1].hostPath: Forbidden"},
		"a directory of its node, allowed":                 {tenancyv1alpha1.TenantPolicy{AllowHostPath: true}, hostPath, ""},

		"a port of its node":        {pod: withPort(80), why: "spec.containers[0].ports[1].hostPort: Invalid value: 80: containers may take no port of their node"},
		"a port below a range":      {ports, withPort(79), "containers may take these ports of their node: 80-90, 8080-8080"},
		"a port above a range":      {ports, withPort(91), "spec.containers[0].ports[1].hostPort"},
		"the first port of a range": {ports, withPort(80), ""},
		"the last port of a range":  {ports, withPort(90), ""},
		"a port of another range":   {ports, withPort(8080), ""},
		"a port of its node, before it starts": {ports, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{}, {Ports: []corev1.ContainerPort{{HostPort: 22}}}}
		}, "spec.initContainers[1].ports[0].hostPort"},
		"a port, in the network of its node": {tenancyv1alpha1.TenantPolicy{AllowHostNamespaces: true}, func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			withPort(80)(p)
		}, ""},

		"the scheduler by name": {pod: func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }},
		"another scheduler": {
			pod: func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" },
			why: `spec.schedulerName: Unsupported value: "volcano": supported values: "default-scheduler"`,
		},
		"another scheduler, allowed": {
			tenancyv1alpha1.TenantPolicy{AllowSchedulers: []string{"yunikorn", "volcano"}},
			func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }, "",
		},
		"another scheduler than the one allowed": {
			tenancyv1alpha1.TenantPolicy{AllowSchedulers: []string{"yunikorn"}},
			func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }, `supported values: "default-scheduler", "yunikorn"`,
		},

		"a runtime that is offered": {pod: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("gvisor") }},
		"a runtime that is not":     {pod: func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("mine") }, why: `spec.runtimeClassName is "mine"`},
		"a scheduling group": {pod: func(p *corev1.Pod) {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("gang")}
		}, why: "spec.schedulingGroup: Forbidden"},
		"annotations in a file":                    {pod: withAnnotationsFile(100_000)},
		"annotations in a file that gets too long": {pod: withAnnotationsFile(150_000), why: "metadata.annotations: Forbidden"},
		"annotations that are in no file": {pod: func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": strings.Repeat("a", 150_000)}
		}},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := offering("RuntimeClass", "gvisor")
			v.Tenant.Policy = tt.policy
			v.Tenant.Sync = allowing("Pod", nil, []string{"a"}).Tenant.Sync
			switch err := k.Admit(v, tenantPod(tt.pod)); {
			case tt.why == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case err == nil:
				t.Errorf("admitted, want a refusal because of %q", tt.why)
			case !strings.Contains(err.Error(), tt.why):
				t.Errorf("refused because of %q, want %q", err, tt.why)
			}
		})
	}
}

// withAnnotationsFile returns a pod with annotations of a length and a volume
// with them in a file.
func withAnnotationsFile(length int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{"a": strings.Repeat("a", length)}
		p.Spec.Volumes = volumes(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{Path: "annotations", FieldRef: fieldRef("metadata.annotations")}},
		}})
	}
}

// TestPodOnTheNodeThatItNames checks that, if the policy allows it, the copy
// names the node as well, until the pod is there: a pod that was bound got its
// node from the scheduler.
func TestPodOnTheNodeThatItNames(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	allowed := tenancyv1alpha1.TenantPolicy{AllowNodeName: true}
	named := func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }
	bound := func(p *corev1.Pod) {
		named(p)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	for _, tt := range []struct {
		name   string
		policy tenancyv1alpha1.TenantPolicy
		pod    func(*corev1.Pod)
		want   string
	}{
		{"allowed", allowed, named, "node-1"},
		{"not allowed", tenancyv1alpha1.TenantPolicy{}, named, ""},
		{"bound", allowed, bound, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			copied, err := k.Desired(under(tt.policy), tenantPod(tt.pod))
			if err != nil || copied.Spec.NodeName != tt.want {
				t.Errorf("the copy names node %q, error %v; want %q", copied.Spec.NodeName, err, tt.want)
			}
		})
	}
}
