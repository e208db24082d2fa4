package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant that is deleted while its pods run", func() {
	It("leaves nothing, and others do not notice", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		bystander := server(ns, "bystander")
		create(ctx, red, bystander)
		leaving := newTenant(ctx, "leaving")
		chooseDNS(ctx, leaving, names.Dedicated)
		set := statefulSet("default", "db") // with a volume
		stubborn := pod("default", "stubborn", busybox, "sh", "-c", "trap '' TERM; while true; do sleep 1; done")
		Eventually(leaving.Client.Create).WithContext(ctx).WithArguments(stubborn).Should(Succeed(), "when there is a service account")
		create(ctx, leaving, set)
		shouldBeReady(ctx, leaving, stubborn)
		Eventually(read(leaving, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}})).WithContext(ctx).
			Should(HaveField("Status.Phase", corev1.PodRunning))
		before := shouldBeReady(ctx, red, bystander)
		Eventually(read(leaving, coreDNS())).WithContext(ctx).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
		pods := copiesOf(ctx, leaving)
		Expect(len(pods)).To(BeNumerically(">=", 3), "with its DNS")
		for _, uid := range pods {
			Expect(processesOf(uid)).NotTo(BeEmpty())
			Expect(kubeletDir(uid)).To(BeADirectory())
		}

		Expect(super.Client.Delete(ctx, leaving.VC)).To(Succeed())
		Eventually(super.Client.Get).WithContext(ctx).WithTimeout(2*soon).
			WithArguments(client.ObjectKeyFromObject(leaving.VC), leaving.VC).Should(beNotFound)
		Eventually(mentions).WithContext(ctx).WithPolling(time.Second).WithArguments(leaving.Key()).Should(BeEmpty(), "its volume goes last")
		Expect(filepath.Dir(super.PKIFile(leaving.Key(), ""))).NotTo(BeADirectory())
		for _, uid := range pods {
			Expect(processesOf(uid)).To(BeEmpty())
			Eventually(kubeletDir).WithContext(ctx).WithArguments(uid).ShouldNot(BeADirectory())
		}

		after := shouldBeReady(ctx, red, bystander)
		Expect(after.Status.ContainerStatuses[0].ContainerID).To(Equal(before.Status.ContainerStatuses[0].ContainerID))
		Expect(after.Status.ContainerStatuses[0].RestartCount).To(BeZero())
		shouldReach(ctx, red, ns, fmt.Sprintf("%s:%d", after.Status.PodIP, port))
	})
})

// copiesOf are the UIDs of a tenant's pods in the super cluster.
func copiesOf(ctx context.Context, t *local.Tenant) []types.UID {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(super.Client.List(ctx, pods, client.MatchingLabels{names.Cluster: t.Key()})).To(Succeed())
	var uids []types.UID
	for _, p := range pods.Items {
		uids = append(uids, p.UID)
	}
	return uids
}

// processesOf are the processes in a pod's containers, by their cgroups.
func processesOf(pod types.UID) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "/pod"+string(pod)) { // else it has ended
			found = append(found, file)
		}
	}
	return found, nil
}

// kubeletDir is where the kubelet keeps the volumes of a pod.
func kubeletDir(pod types.UID) string {
	return filepath.Join(super.Dir, "node", "var", "lib", "kubelet", "pods", string(pod))
}

// mentions are the objects of the super cluster in which a text is found,
// except events, which stay for an hour.
func mentions(ctx context.Context, text string) ([]string, error) {
	var found []string
	err := local.EachObject(ctx, super.Config, func(of schema.GroupVersionResource, obj *unstructured.Unstructured) {
		if data, err := json.Marshal(obj); err != nil || of.Resource != "events" && strings.Contains(string(data), text) {
			found = append(found, fmt.Sprintf("%s %s/%s", of.Resource, obj.GetNamespace(), obj.GetName()))
		}
	})
	return found, err
}
