package egress

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func superPod(name, key, ip string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Status:     corev1.PodStatus{PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	if key != "" {
		p.Annotations = map[string]string{names.Cluster: key, "another": "annotation"}
	}
	return p
}

// TestDirectory needs no real apiserver: what is tested is the index. That pods
// which have ended are left out is a selector, and the attacks try it.
func TestDirectory(t *testing.T) { synctest.Test(t, testDirectory) }

func testDirectory(t *testing.T) {
	inNode := superPod("in-node", "red", "10.9.0.1")
	inNode.Spec.HostNetwork = true
	light := superPod("light", "", "10.1.0.6")
	light.Labels = map[string]string{names.Converted: "light"}
	forged := superPod("forged", "red", "10.1.0.7")
	forged.Labels = light.Labels
	client := fake.NewClientset(
		light, forged,
		superPod("one", "red", "10.1.0.1"), superPod("two", "blue", "10.1.0.2"), superPod("three", "", "10.1.0.3"),
		superPod("both", "red", "10.1.0.4"), superPod("both-too", "blue", "10.1.0.4"), superPod("six", "red", "FD00:0::7"),
		inNode, superPod("pending", "red", ""),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "n"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.9"},
		}}},
	)
	d, err := WatchSuperCluster(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]Holder{
		"10.1.0.1":    {Pods: []string{"red"}},
		"10.1.0.2":    {Pods: []string{"blue"}},
		"10.1.0.3":    {Pods: []string{""}},
		"10.1.0.4":    {Pods: []string{"blue", "red"}},
		"fd00::7":     {Pods: []string{"red"}},
		"10.1.0.6":    {Pods: []string{"light"}},
		"10.1.0.7":    {Pods: []string{"light", "red"}},
		"10.9.0.1":    {Node: true, Pods: []string{"red"}},
		"203.0.113.9": {Node: true},
		"10.1.0.9":    {},
	} {
		got := d.Holder(netip.MustParseAddr(address))
		slices.Sort(got.Pods)
		if got.Node != want.Node || !slices.Equal(got.Pods, want.Pods) {
			t.Errorf("%s: got %+v, want %+v", address, got, want)
		}
	}

	if err := client.CoreV1().Pods("ns").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if got := d.Holder(netip.MustParseAddr("10.1.0.1")); len(got.Pods) > 0 {
		t.Errorf("the address of a deleted pod: got %+v", got)
	}
}

func TestReduce(t *testing.T) {
	full := superPod("one", "red", "10.1.0.1")
	full.Spec.Containers = []corev1.Container{{Name: "main"}}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	obj, err := reduce(full)
	reduced := obj.(*corev1.Pod)
	if err != nil || len(reduced.Spec.Containers) > 0 || len(reduced.ManagedFields) > 0 || len(reduced.Annotations) != 1 {
		t.Errorf("got %+v, %v", reduced, err)
	}
}
