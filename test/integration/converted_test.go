package integration

import (
	"bufio"
	"net"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// namespaceOf returns a Namespace.
func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// keysOf returns the keys of objects, sorted.
func keysOf[T any, P interface {
	*T
	client.Object
}](items []T) []string {
	var all []string
	for i := range items {
		all = append(all, P(&items[i]).GetNamespace()+"/"+P(&items[i]).GetName())
	}
	slices.Sort(all)
	return all
}

var _ = Describe("A converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *kit.Converted

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		red, blue = converter.Tenant(ctx, "team-0a1b2c-red"), converter.Tenant(ctx, "team-9d8e7f-blue")
		for _, tenant := range []*kit.Converted{red, blue} {
			kit.Create(ctx, tenant.Client, namespaceOf("shop"), namespaceOf("b-shop"),
				configMap("shop", "settings", map[string]string{"of": tenant.Key[len(tenant.Key)-3:]}))
		}
	})

	It("sees its own objects, and no others of the same names", func(ctx SpecContext) {
		for _, tenant := range []*kit.Converted{red, blue} {
			var namespaces corev1.NamespaceList
			Expect(tenant.Client.List(ctx, &namespaces)).To(Succeed())
			Expect(keysOf(namespaces.Items)).To(Equal([]string{"/b-shop", "/shop"}))
			Expect(namespaces.Items[0].Labels).To(Equal(map[string]string{"kubernetes.io/metadata.name": namespaces.Items[0].Name}))
			Expect(namespaces.Items[0].Annotations).To(BeEmpty())
			settings := configMap("shop", "settings", nil)
			Expect(kit.Get(ctx, tenant.Client, settings)).To(Succeed())
			Expect(settings.Data["of"]).To(Equal(tenant.Key[len(tenant.Key)-3:]))
			Expect(settings.Labels).To(BeEmpty())
			var all corev1.ConfigMapList
			Eventually(func() ([]string, error) {
				err := tenant.Client.List(ctx, &all)
				return keysOf(all.Items), err
			}).Should(Equal([]string{"b-shop/kube-root-ca.crt", "shop/kube-root-ca.crt", "shop/settings"}), "a controller has made two")
		}
		var supers corev1.ConfigMapList
		Expect(super.Client.List(ctx, &supers, client.MatchingLabels{names.Converted: red.Key})).To(Succeed())
		Expect(supers.Items).To(HaveLen(3))
	})

	It("creates, updates, patches, applies and deletes", func(ctx SpecContext) {
		ns := namespaceOf("verbs")
		kit.Create(ctx, red.Client, ns)
		made := configMap("verbs", "", nil)
		made.GenerateName = "made-"
		kit.Create(ctx, red.Client, made)
		Expect(made.Name).To(HavePrefix("made-"))
		Expect(made.Namespace).To(Equal("verbs"))

		kit.Edit(ctx, red.Client, made, func(c *corev1.ConfigMap) {
			c.Data = map[string]string{"a": "1"}
			c.Labels = map[string]string{"app": "web"}
		})
		for _, patch := range []client.Patch{
			client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/labels","value":{"b":"2"}},{"op":"add","path":"/data/b","value":"2"}]`)),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null},"data":{"c":"3"}}`)),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"$patch":"replace","d":"4"}},"data":{"d":"4"}}`)),
		} {
			Expect(red.Client.Patch(ctx, made, patch)).To(Succeed())
			var labelled corev1.ConfigMapList
			Expect(super.Client.List(ctx, &labelled, client.MatchingLabels{names.Converted: red.Key}, client.MatchingFields{"metadata.name": made.Name})).To(Succeed())
			Expect(labelled.Items).To(HaveLen(1), "the label of the tenant stays")
		}
		Expect(made.Data).To(Equal(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}))
		Expect(made.Labels).To(Equal(map[string]string{"d": "4"}))

		applied := corev1ac.ConfigMap("applied", "verbs").WithData(map[string]string{"a": "1"})
		for range 2 {
			Expect(red.Client.Apply(ctx, applied, client.FieldOwner("spec"))).To(Succeed())
		}
		Expect(red.Client.Apply(ctx, corev1ac.Namespace("verbs").WithLabels(map[string]string{"tier": "a"}), client.FieldOwner("spec"))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, ns)).To(Succeed())
		Expect(ns.Labels).To(HaveKeyWithValue("tier", "a"))

		Expect(red.Client.Delete(ctx, made)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, made)
		Expect(red.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("verbs"), client.MatchingFields{"metadata.name": "applied"})).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, configMap("verbs", "applied", nil))
		dry := configMap("verbs", "dry", nil)
		Expect(red.Client.Create(ctx, dry, client.DryRunAll)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, dry)
	})

	It("names its Namespaces as it likes, and has Pod Security labels without an effect", func(ctx SpecContext) {
		generated := namespaceOf("")
		generated.GenerateName = "generated-"
		generated.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
		long := namespaceOf(strings.Repeat("n", 63))
		kit.Create(ctx, red.Client, generated, long)
		Expect(generated.Name).To(MatchRegexp("^generated-.{5}$"))
		kit.Create(ctx, red.Client, configMap(long.Name, "a", nil))
		var lists corev1.ConfigMapList
		Expect(red.Client.List(ctx, &lists, client.MatchingFields{"metadata.name": "a"})).To(Succeed())
		Expect(keysOf(lists.Items)).To(Equal([]string{long.Name + "/a"}))

		patches := []string{`{"metadata":{"labels":null,"annotations":null}}`, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`}
		for _, patch := range patches {
			Expect(red.Client.Patch(ctx, generated, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		kit.Edit(ctx, red.Client, generated, func(n *corev1.Namespace) { n.Labels["tier"] = "a" })
		Expect(generated.Labels).To(Equal(map[string]string{
			"pod-security.kubernetes.io/enforce": "privileged", "tier": "a", "kubernetes.io/metadata.name": generated.Name,
		}))
		inSuper := namespaceOf(names.SuperNamespace(red.Key, generated.Name))
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "baseline"))
		Expect(inSuper.Labels).To(HaveKeyWithValue(names.Converted, red.Key))
		Expect(inSuper.Annotations).To(HaveKeyWithValue(names.Namespace, generated.Name))

		var selected corev1.NamespaceList
		Expect(red.Client.List(ctx, &selected, client.MatchingLabels{"kubernetes.io/metadata.name": "shop"})).To(Succeed())
		Expect(keysOf(selected.Items)).To(Equal([]string{"/shop"}))
		Expect(red.Client.List(ctx, &selected, client.MatchingLabels{"pod-security.kubernetes.io/enforce": "privileged"})).To(Succeed())
		Expect(keysOf(selected.Items)).To(Equal([]string{"/" + generated.Name}))
	})

	It("uses a Namespace that was created by a client that wants a Table", func(ctx SpecContext) {
		reply := red.Ask(ctx, http.MethodPost, "/api/v1/namespaces?includeObject=None", `{"metadata":{"name":"tabled"}}`,
			"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
		Expect(reply.Body).To(ContainSubstring(`"kind":"Table"`))
		kit.Create(ctx, red.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tabled", Name: "a"}})
	})

	It("watches its objects across namespaces, with bookmarks", func(ctx SpecContext) {
		sends := true
		w, err := red.Client.Watch(ctx, &corev1.ConfigMapList{}, &client.ListOptions{Raw: &metav1.ListOptions{
			AllowWatchBookmarks: true, SendInitialEvents: &sends, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			FieldSelector: "metadata.name!=kube-root-ca.crt",
		}})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		for {
			var event watch.Event
			Eventually(w.ResultChan()).Should(Receive(&event))
			if event.Type == watch.Bookmark {
				break
			}
			Expect(event.Type).To(Equal(watch.Added))
			Expect(event.Object.(*corev1.ConfigMap).Namespace).NotTo(HavePrefix("team"))
		}
		kit.Create(ctx, blue.Client, configMap("b-shop", "watched", nil))
		kit.Create(ctx, red.Client, configMap("b-shop", "watched", nil))
		Expect(red.Client.Delete(ctx, configMap("b-shop", "watched", nil))).To(Succeed())
		for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
			event := watch.Event{Type: watch.Bookmark}
			for event.Type == watch.Bookmark { // one may come at any time
				Eventually(w.ResultChan()).Should(Receive(&event))
			}
			Expect(event.Type).To(Equal(want))
			Expect(event.Object.(*corev1.ConfigMap).Namespace).To(Equal("b-shop"))
		}
	})

	It("reads lists in pages, and only its own", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, namespaceOf("pages"))
		for _, name := range []string{"a", "b", "c", "d"} {
			kit.Create(ctx, red.Client, secret("pages", name, nil))
		}
		var page corev1.SecretList
		var found []string
		for {
			Expect(red.Client.List(ctx, &page, client.InNamespace("pages"), client.Limit(3), client.Continue(page.Continue))).To(Succeed())
			found = append(found, keysOf(page.Items)...)
			if page.Continue == "" {
				break
			}
		}
		Expect(found).To(Equal([]string{"pages/a", "pages/b", "pages/c", "pages/d"}))
		Expect(red.Client.List(ctx, &page, client.InNamespace("pages"), client.Limit(1))).To(Succeed())
		for _, other := range []struct {
			tenant  *kit.Converted
			options []client.ListOption
		}{
			{blue, []client.ListOption{client.InNamespace("pages")}}, {red, nil}, {red, []client.ListOption{client.InNamespace("shop")}},
			{red, []client.ListOption{client.InNamespace("pages"), client.MatchingLabels{"a": "b"}}},
		} {
			err := other.tenant.Client.List(ctx, &corev1.SecretList{}, append(other.options, client.Continue(page.Continue))...)
			Expect(err).To(MatchError(apierrors.IsResourceExpired, "expired"))
		}
	})

	It("has subresources", func(ctx SpecContext) {
		p := kit.Pod("shop", "web")
		kit.Create(ctx, red.Client, p)
		token := p.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken
		Expect(token.Audience).To(Equal("https://kubernetes.default.svc.cluster.local"), "no token of the super cluster")
		kit.SetPodStatus(ctx, red.Client, p, func(s *corev1.PodStatus) { s.Message = "in shop" })
		clients := kubernetes.NewForConfigOrDie(red.Config)
		Expect(clients.PolicyV1().Evictions("shop").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, p)

		d := deployment("shop", "web", 0)
		kit.Create(ctx, red.Client, d)
		scale := &autoscalingv1.Scale{}
		Expect(red.Client.SubResource("scale").Get(ctx, d, scale)).To(Succeed())
		Expect(scale.Namespace).To(Equal("shop"))
		scale.Spec.Replicas = 2
		scale.ResourceVersion = "" // the controller updates the Deployment meanwhile
		Expect(red.Client.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, d)).To(Succeed())
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(2))
	})

	It("streams from and to its pods, by each protocol of clients", func(ctx SpecContext) {
		kubelet := local.StartKubelet()
		DeferCleanup(kubelet.Stop)
		kubelet.Print("first")
		kit.Create(ctx, red.Client, namespaceOf(agentNamespace))
		node := nodeOf(ctx, kubelet)
		p := kit.Pod(agentNamespace, "streams", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{bareLabel: node.Name} })
		kit.Create(ctx, red.Client, p)
		// The tenant may not tolerate the node's taint, so that no scheduler binds the pod.
		bound := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
		inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace(red.Key, agentNamespace), Name: p.Name}}
		Expect(super.Client.SubResource("binding").Create(ctx, inSuper, bound)).To(Succeed())
		Expect(kit.Get(ctx, red.Client, p)).To(Succeed())
		Expect(p.Spec.NodeName).To(Equal(node.Name))
		as := &local.Tenant{Config: red.Config}
		Expect(logs(ctx, as, "streams", &corev1.PodLogOptions{TailLines: new(int64(7))})).To(HavePrefix("first\n"))
		for _, protocol := range protocols() {
			Expect(run(ctx, as, "streams", protocol.executor, "hello", "head", "-c5")).To(Equal(said{out: "hello"}), protocol.name)
		}
		_, err := logs(ctx, as, "missing", &corev1.PodLogOptions{})
		Expect(err).To(MatchError(`pods "missing" not found`))
		address, end := forward(as, "streams", 80)
		conn, err := net.Dial("tcp", address)
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.Write([]byte("ping\n"))).To(Equal(5))
		lines := bufio.NewReader(conn)
		Expect(lines.ReadString('\n')).To(Equal("port 80\n"))
		Expect(lines.ReadString('\n')).To(Equal("ping\n"))
		Expect(conn.Close()).To(Succeed())
		end()
	}, SpecTimeout(3*kit.Soon))

	It("is selected by its own NetworkPolicies only", func(ctx SpecContext) {
		all := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
		named := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "b-shop"}}}
		policy := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "open"},
			Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{all, named}}}},
		}
		kit.Create(ctx, red.Client, policy)
		Expect(policy.Spec.Ingress[0].From).To(Equal([]networkingv1.NetworkPolicyPeer{all, named}))
		inSuper := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: names.SuperNamespace(red.Key, "shop"), Name: "open"}}
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels).To(Equal(map[string]string{names.Converted: red.Key}))
		Expect(inSuper.Spec.Ingress[0].From[1].NamespaceSelector.MatchLabels).To(HaveKeyWithValue("kubernetes.io/metadata.name", names.SuperNamespace(red.Key, "b-shop")))
	})

	It("is used by kubectl, Tables included", func(ctx SpecContext) {
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		p.does(ctx, "shop ", "get", "namespaces")
		p.does(ctx, "namespace/dry created (server dry run)", "create", "namespace", "dry", "--dry-run=server")
		p.does(ctx, "created", "create", "deployment", "front", "-n", "b-shop", "--image=web", "--replicas=0")
		p.does(ctx, "b-shop ", "get", "deployments", "-A")
		p.does(ctx, "scaled", "scale", "deployment", "front", "-n", "b-shop", "--replicas=1")
		p.does(ctx, "Namespace:              b-shop", "describe", "deployment", "front", "-n", "b-shop")
		p.does(ctx, "labeled", "label", "deployment", "front", "-n", "b-shop", "tier=a")
		p.does(ctx, "serverside-applied", "label", "deployment", "front", "-n", "b-shop", "tier=a", "--overwrite", "-o", "jsonpath=serverside-applied")
		p.does(ctx, "deleted", "delete", "deployment", "front", "-n", "b-shop")
		out, err := p.kubectl(ctx, "get", "componentstatuses")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring(`the server doesn't have a resource type "componentstatuses"`))
	})

	It("gets objects in protobuf, and answers in JSON", func(ctx SpecContext) {
		config := rest.CopyConfig(red.Config)
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
		clients := kubernetes.NewForConfigOrDie(config)
		made, err := clients.CoreV1().Secrets("shop").Create(ctx, secret("shop", "protobuf", map[string]string{"a": "b"}), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Namespace).To(Equal("shop"))
		Expect(clients.CoreV1().Secrets("shop").Delete(ctx, "protobuf", metav1.DeleteOptions{})).To(Succeed())

		crds := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		manifest, _, _ := strings.Cut(strings.ReplaceAll(crdManifest, "stable.example.com", "protobuf.example.com"), "\n---\n")
		Expect(yaml.Unmarshal([]byte(manifest), crd)).To(Succeed())
		_, err = crds.Create(ctx, crd, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(crds.Delete(ctx, crd.Name, metav1.DeleteOptions{})).To(Succeed())
	})

	It("gets errors about what is not served, and what does not exist", func(ctx SpecContext) {
		clients := kubernetes.NewForConfigOrDie(red.Config)
		_, err := clients.CoreV1().ComponentStatuses().List(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(err).To(MatchError(ContainSubstring("are the platform's")))
		err = red.Client.Create(ctx, configMap("missing", "a", nil))
		Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(err).To(MatchError(`namespaces "missing" not found`))
		Expect(red.Client.Get(ctx, client.ObjectKey{Namespace: "missing", Name: "a"}, &corev1.ConfigMap{})).To(MatchError(`configmaps "a" not found`))
		var none corev1.ConfigMapList
		Expect(red.Client.List(ctx, &none, client.InNamespace("missing"))).To(Succeed())
		Expect(none.Items).To(BeEmpty())
		err = red.Client.Create(ctx, configMap("shop", "UPPER", nil))
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
		Expect(red.Client.Create(ctx, namespaceOf("shop"))).To(MatchError(`namespaces "shop" already exists`))
		err = clients.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/shop/configmaps").
			SetHeader("Content-Type", "application/cbor").Body([]byte{0xd9, 0xd9, 0xf7, 0xa0}).Do(ctx).Error()
		Expect(apierrors.ReasonForError(err)).To(Equal(metav1.StatusReasonUnsupportedMediaType))
	})

	It("gets an error about all fields that are unknown or occur twice", func(ctx SpecContext) {
		body := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"unknown":1,"replicas":1,"replicas":2,"paused":true,"paused":false}}`
		reply := red.Ask(ctx, http.MethodPost, "/apis/apps/v1/namespaces/shop/deployments?fieldValidation=Strict", body)
		Expect(reply.Code).To(Equal(http.StatusBadRequest), reply.Body)
		Expect(reply.Body).To(SatisfyAll(ContainSubstring(`strict decoding error`), ContainSubstring(`unknown field \"spec.unknown\"`),
			ContainSubstring(`duplicate field \"spec.replicas\"`), ContainSubstring(`duplicate field \"spec.paused\"`)))
	})

	It("deletes a namespace with all objects", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, namespaceOf("gone"), configMap("gone", "a", nil))
		held := configMap("gone", "held", nil)
		held.Finalizers = []string{"example.com/held"}
		kit.Create(ctx, red.Client, held)
		Expect(red.Client.Delete(ctx, namespaceOf("gone"))).To(Succeed())
		inSuper := configMap(names.SuperNamespace(red.Key, "gone"), "held", nil)
		kit.ShouldVanish(ctx, super.Client, configMap(inSuper.Namespace, "a", nil))
		Consistently(func() (corev1.NamespacePhase, error) {
			gone := namespaceOf("gone")
			err := kit.Get(ctx, red.Client, gone)
			return gone.Status.Phase, err
		}).Should(Equal(corev1.NamespaceTerminating))
		var left corev1.ConfigMapList
		Expect(red.Client.List(ctx, &left, client.InNamespace("gone"))).To(Succeed())
		Expect(keysOf(left.Items)).To(ContainElement("gone/held"))
		kit.Edit(ctx, super.Client, inSuper, func(c *corev1.ConfigMap) { c.Finalizers = nil })
		kit.ShouldVanish(ctx, red.Client, namespaceOf("gone"))
		kit.ShouldVanish(ctx, super.Client, namespaceOf(names.SuperNamespace(red.Key, "gone")))
		kit.Create(ctx, red.Client, namespaceOf("gone"))
	})

	It("has a decision about every kind of the super cluster", func() {
		clients := discovery.NewDiscoveryClientForConfigOrDie(super.Config)
		_, lists, err := clients.ServerGroupsAndResources()
		Expect(err).NotTo(HaveOccurred())
		var undecided []string
		for _, list := range lists {
			undecided = append(undecided, undecidedOf(list)...)
		}
		Expect(undecided).To(BeEmpty(), "add an entry to gateway/convert/kinds")
	})
})

// undecidedOf returns the resources of an API group without an entry in the table
// of converted kinds. Groups of CRDs and of other apiservers have none.
func undecidedOf(list *metav1.APIResourceList) []string {
	group, _, found := strings.Cut(list.GroupVersion, "/")
	if !found {
		group = ""
	}
	if !scheme.Scheme.IsGroupRegistered(group) && group != "apiextensions.k8s.io" && group != "apiregistration.k8s.io" {
		return nil
	}
	var undecided []string
	for _, resource := range list.APIResources {
		name, subresource, _ := strings.Cut(resource.Name, "/")
		kind := kinds.Find(group, name)
		_, decided := kind.Subresources[subresource]
		if kind.Kind == "" || subresource != "" && !decided || subresource == "" && kind.Kind != resource.Kind ||
			kind.Served() && subresource == "" && kind.Namespaced() != resource.Namespaced {
			undecided = append(undecided, list.GroupVersion+" "+resource.Name)
		}
	}
	return undecided
}
