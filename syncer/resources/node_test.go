package resources

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// superNode returns a node as a kubelet reports it.
func superNode() *corev1.Node {
	node := fill(&corev1.Node{})
	node.Name = "node-1"
	node.Labels = map[string]string{
		"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64",
		"node.kubernetes.io/instance-type": "large",
		"topology.kubernetes.io/zone":      "z", "topology.kubernetes.io/region": "r",
		"node-role.kubernetes.io/worker": "", "example.com/rack": "7", "beta.kubernetes.io/os": "linux",
		"topology.kubernetes.io": "no prefix", "tenancy.x-k8s.io/from-super": "forged",
	}
	return node
}

// TestVirtualNode checks that only these fields of a node are synced up;
// especially no annotation, image, volume or identity of the machine.
func TestVirtualNode(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Node]](t, Node(Agent{}))
	if !k.Node || k.Expires {
		t.Errorf("the kind is %+v; want one of nodes, which does not expire", k)
	}
	half := resource.MustParse("1500m")
	at := metav1.Unix(1700000000, 0)
	taint := corev1.Taint{Key: "text-4", Value: "text-4", Effect: "text-4", TimeAdded: &at}
	condition := corev1.NodeCondition{Type: "text-4", Status: "text-4", Reason: "text-4", Message: "text-4", LastTransitionTime: at}
	condition.LastHeartbeatTime = at
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{
			"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64",
			"node.kubernetes.io/instance-type": "large",
			"topology.kubernetes.io/zone":      "z", "topology.kubernetes.io/region": "r",
		}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{taint, taint}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{"text-3": half},
			Allocatable: corev1.ResourceList{"text-3": half},
			Conditions:  []corev1.NodeCondition{condition, condition},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "text-3", OperatingSystem: "text-3", OSImage: "text-3", KernelVersion: "text-3",
				ContainerRuntimeVersion: "text-3", KubeletVersion: "text-3",
			},
			DeclaredFeatures: []string{"text-3", "text-3"},
		},
	}
	if diff := cmp.Diff(want, k.Desired(kinds.View{}, superNode())); diff != "" {
		t.Errorf("virtual node (-want +got):\n%s", diff)
	}
}

// TestVirtualNodeIgnoresHeartbeats checks that heartbeats alone cause no
// requests to tenants.
func TestVirtualNodeIgnoresHeartbeats(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		same   bool
	}{
		"a heartbeat":               {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(9, 0) }, true},
		"an annotation":             {func(n *corev1.Node) { n.Annotations["volumes.kubernetes.io/x"] = "1" }, true},
		"an image":                  {func(n *corev1.Node) { n.Status.Images = nil }, true},
		"an address":                {func(n *corev1.Node) { n.Status.Addresses = nil }, true},
		"a volume":                  {func(n *corev1.Node) { n.Status.VolumesInUse = nil }, true},
		"a label that is not shown": {func(n *corev1.Node) { n.Labels["example.com/rack"] = "8" }, true},
		"a label that is shown":     {func(n *corev1.Node) { n.Labels["topology.kubernetes.io/zone"] = "y" }, false},
		"a condition":               {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"when it changed":           {func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.Unix(9, 0) }, false},
		"allocatable resources":     {func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") }, false},
		"a taint":                   {func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		"a cordon":                  {func(n *corev1.Node) { n.Spec.Unschedulable = false }, false},
		"declared features":         {func(n *corev1.Node) { n.Status.DeclaredFeatures = nil }, false},
		"a new kubelet":             {func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.0" }, false},
	}
	k := kindOf[kinds.Up[*corev1.Node]](t, Node(Agent{}))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was, now := superNode(), superNode()
			tt.change(now)
			if got := semanticEqual(k.Desired(kinds.View{}, was), k.Desired(kinds.View{}, now)); got != tt.same {
				t.Errorf("the tenant sees the same: %t, want %t", got, tt.same)
			}
		})
	}
}

// TestNodeMerge checks that annotations of the tenant's own controllers stay;
// the super cluster's fields are restored.
func TestNodeMerge(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Node]](t, Node(Agent{}))
	tenant := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-1", UID: "tenant-uid",
			Labels:      map[string]string{"edited": "1"},
			Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
		},
		Spec:   corev1.NodeSpec{PodCIDR: "10.1.0.0/24", Taints: []corev1.Taint{{Key: "edited"}}, Unschedulable: true},
		Status: corev1.NodeStatus{Phase: corev1.NodePending, Addresses: []corev1.NodeAddress{{Address: "192.0.2.1"}}},
	}
	desired := k.Desired(kinds.View{}, superNode())
	desired.Spec.Unschedulable = false

	merged := tenant.DeepCopy()
	k.Merge(merged, desired)
	want := tenant.DeepCopy()
	want.Labels, want.Spec.Taints, want.Spec.Unschedulable = desired.Labels, desired.Spec.Taints, false
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Errorf("after Merge (-want +got):\n%s", diff)
	}
	k.Status(merged, desired)
	want.Status = desired.Status
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Errorf("after Status (-want +got):\n%s", diff)
	}
}

// TestNodeKeepsTheLabelsOfATenant: DaemonSets select nodes by them. They add no
// label that the super cluster shows or reserves.
func TestNodeKeepsTheLabelsOfATenant(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Node]](t, Node(Agent{}))
	tenant := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"disk": "ssd", "node-role.kubernetes.io/mine": "", "topology.kubernetes.io/zone": "forged", "topology.kubernetes.io/rack": "forged",
		"kubernetes.io/hostname": "forged", names.Public: "true",
	}}}
	shown := k.Desired(kinds.View{}, superNode()).GetLabels()
	for policy, own := range map[tenancyv1alpha1.DaemonSetPolicy]map[string]string{
		"": {}, tenancyv1alpha1.DaemonSetsRefuse: {},
		tenancyv1alpha1.DaemonSetsRun: {"disk": "ssd", "node-role.kubernetes.io/mine": ""},
	} {
		desired := k.Desired(kinds.View{}, superNode())
		k.Keep(under(tenancyv1alpha1.TenantPolicy{DaemonSets: policy}), tenant, desired)
		want := maps.Clone(shown)
		maps.Copy(want, own)
		if diff := cmp.Diff(want, desired.GetLabels()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", policy, diff)
		}
	}
}

// TestVirtualNodeLeadsToTheAgent checks that an apiserver connects to the
// agent. The other addresses are those of node ports, and none of a type that
// an apiserver would use for the kubelet.
func TestVirtualNodeLeadsToTheAgent(t *testing.T) {
	super := superNode()
	super.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "node-1"}, {Type: corev1.NodeInternalDNS, Address: "node-1.internal"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"},
		{Type: corev1.NodeExternalIP, Address: "198.51.100.1"}, {Type: corev1.NodeExternalDNS, Address: "node-1.example"},
	}
	for _, agent := range []Agent{{}, {"10.0.0.7", 10550}, {"agent.example", 443}} {
		t.Run(agent.Host, func(t *testing.T) {
			var want []corev1.NodeAddress
			if agent.Host != "" {
				want = []corev1.NodeAddress{
					{Type: corev1.NodeHostName, Address: agent.Host}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
					{Type: corev1.NodeInternalIP, Address: "2001:db8::1"}, {Type: corev1.NodeExternalIP, Address: "198.51.100.1"},
				}
			}
			shown := kindOf[kinds.Up[*corev1.Node]](t, Node(agent)).Desired(kinds.View{}, super)
			if diff := cmp.Diff(want, shown.Status.Addresses); diff != "" {
				t.Error(diff)
			}
			if got := shown.Status.DaemonEndpoints.KubeletEndpoint.Port; got != agent.Port {
				t.Errorf("the port is %d", got)
			}
		})
	}
}
