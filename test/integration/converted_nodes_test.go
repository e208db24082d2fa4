package integration

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("Nodes of a converted tenant", Ordered, ContinueOnFailure, func() {
	var (
		red, blue *kit.Converted
		node      *corev1.Node
	)
	// see returns the names of the nodes that a tenant sees.
	see := func(ctx context.Context, tenant *kit.Converted, options ...client.ListOption) []string {
		GinkgoHelper()
		var nodes corev1.NodeList
		Expect(tenant.Client.List(ctx, &nodes, options...)).To(Succeed())
		return keysOf(nodes.Items)
	}
	// run creates a pod of blue on the node.
	run := func(ctx context.Context, name string) *corev1.Pod {
		GinkgoHelper()
		pod := kit.Pod("shop", name, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{bareLabel: node.Name} })
		kit.Create(ctx, blue.Client, pod)
		inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace(blue.Key, "shop"), Name: name}}
		bound := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
		Expect(super.Client.SubResource("binding").Create(ctx, inSuper, bound)).To(Succeed())
		return pod
	}

	BeforeAll(func(ctx SpecContext) {
		node = bareNode(ctx)
		kit.Edit(ctx, super.Client, node, func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable], n.Annotations = "linux", map[string]string{"secret": "a"}
			n.Labels["node-role.kubernetes.io/hidden"] = ""
		})
		converter := kit.StartConverter(ctx, super)
		red = converter.Tenant(ctx, "team-0a1b2c-shown", func(h *convert.Handler) { h.Nodes = labels.Set{bareLabel: node.Name}.AsSelector() })
		blue = converter.Tenant(ctx, "team-9d8e7f-running")
		kit.Create(ctx, blue.Client, namespaceOf("shop"))
	})

	It("are those that are selected, and those that run its pods", func(ctx SpecContext) {
		Expect(see(ctx, red)).To(Equal([]string{"/" + node.Name}))
		Expect(see(ctx, blue)).To(BeEmpty())
		Expect(kit.Get(ctx, blue.Client, node.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		run(ctx, "web")
		Eventually(func() []string { return see(ctx, blue) }).Should(Equal([]string{"/" + node.Name}))
		found := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		Expect(kit.Get(ctx, blue.Client, found)).To(Succeed())
		Expect(found.Labels).To(Equal(map[string]string{corev1.LabelOSStable: "linux"}))
		Expect(found.Annotations).To(BeEmpty())
		Expect(found.ManagedFields).To(BeEmpty())
		Expect(found.Spec.Taints).To(HaveLen(1))
		Expect(found.Status.Allocatable).NotTo(BeEmpty())
	})

	It("are selected by the labels that it sees, in Tables and metadata, too", func(ctx SpecContext) {
		for selector, want := range map[string]int{
			"kubernetes.io/os=linux": 1, "!" + bareLabel: 1, bareLabel + "=" + node.Name: 0, "kubernetes.io/os=windows": 0,
			"node-role.kubernetes.io/hidden": 0,
		} {
			parsed, err := labels.Parse(selector)
			Expect(err).NotTo(HaveOccurred())
			Expect(see(ctx, red, client.MatchingLabelsSelector{Selector: parsed})).To(HaveLen(want), selector)
		}
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		out, err := p.kubectl(ctx, "get", "nodes", "--show-labels")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(node.Name + ` +Ready +<none> .* kubernetes.io/os=linux`))
		var metadata metav1.PartialObjectMetadataList
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		Expect(red.Client.List(ctx, &metadata)).To(Succeed())
		Expect(metadata.Items).To(HaveLen(1))
		Expect(metadata.Items[0].Annotations).To(BeEmpty())
	})

	It("are watched", func(ctx SpecContext) {
		w, err := red.Client.Watch(ctx, &corev1.NodeList{})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		var event watch.Event
		Eventually(w.ResultChan()).Should(Receive(&event))
		Expect(event.Object.(*corev1.Node).Name).To(Equal(node.Name))
		other := bareNode(ctx)
		kit.Edit(ctx, super.Client, other, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		kit.Edit(ctx, super.Client, node, func(n *corev1.Node) { n.Labels["topology.kubernetes.io/zone"] = "a" })
		for event.Object.(*corev1.Node).Labels["topology.kubernetes.io/zone"] == "" { // its kubelet writes to it too
			Eventually(w.ResultChan()).Should(Receive(&event))
			Expect(event.Object.(*corev1.Node).Name).To(Equal(node.Name))
		}
		Expect(event.Object.(*corev1.Node).Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "a"))
		Expect(event.Object.(*corev1.Node).Annotations).To(BeEmpty())
	})

	It("cannot be changed", func(ctx SpecContext) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`))
		for _, err := range []error{
			red.Client.Patch(ctx, node.DeepCopy(), patch), red.Client.Delete(ctx, node.DeepCopy()),
			red.Client.Status().Patch(ctx, node.DeepCopy(), patch), red.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
			red.Client.DeleteAllOf(ctx, &corev1.Node{}),
		} {
			Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
		}
		Expect(red.Ask(ctx, http.MethodGet, "/api/v1/nodes/"+node.Name+"/proxy/pods", "").Code).To(Equal(http.StatusForbidden))
	})

	It("has no proxy to a pod that has ended, and to an address that no kubelet has reported", func(ctx SpecContext) {
		pod := run(ctx, "ended")
		path := "/api/v1/namespaces/shop/pods/ended:80/proxy/"
		reply := blue.Ask(ctx, http.MethodGet, path, "")
		Expect(reply.Code).To(Equal(http.StatusBadRequest), reply.Body)
		Expect(reply.Body).To(ContainSubstring("address not allowed"), "by the apiserver")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"podIP":"192.0.2.1","podIPs":[{"ip":"192.0.2.1"}]}}`))
		Expect(blue.Client.Status().Patch(ctx, pod.DeepCopy(), patch)).To(MatchError(ContainSubstring("does not change the addresses of a pod")))
		inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace(blue.Key, "shop"), Name: "ended"}}
		kit.SetPodStatus(ctx, super.Client, inSuper, func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded })
		reply = blue.Ask(ctx, http.MethodGet, path, "")
		Expect(reply.Code).To(Equal(http.StatusServiceUnavailable), reply.Body)
		Expect(reply.Body).To(ContainSubstring("has ended"))
		Expect(blue.Ask(ctx, http.MethodGet, "/api/v1/namespaces/shop/services/missing/proxy/", "").Code).To(Equal(http.StatusNotFound))
	})
})
