package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// converted has a VirtualCluster be one without a control plane.
func converted(vc *tenancyv1alpha1.VirtualCluster) {
	vc.Spec.Provisioner, vc.Spec.Policy = tenancyv1alpha1.ProvisionerConverted, nil
}

// gatewayKubeconfig returns the kubeconfig of a tenant through the gateway.
func gatewayKubeconfig(ctx context.Context, t *local.Tenant) []byte {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}, secret)).To(Succeed())
	return secret.Data[names.GatewayKubeconfigKey]
}

const webManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
`

const crdManifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shirts.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: shirts, singular: shirt, kind: Shirt, shortNames: [sh]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, description: the color of the shirt}
              replicas: {type: integer}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: houses.stable.example.com}
spec:
  group: stable.example.com
  scope: Cluster
  names: {plural: houses, singular: house, kind: House}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const shirtManifest = `
apiVersion: stable.example.com/v1
kind: Shirt
metadata: {name: plain, namespace: default}
spec: {color: blue, replicas: 1}
---
apiVersion: stable.example.com/v1
kind: House
metadata: {name: brick}
`

const ownedManifest = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  namespace: default
  ownerReferences: [{apiVersion: stable.example.com/v1, kind: Shirt, name: plain, uid: %s}]
`

var _ = Describe("A VirtualCluster that is converted", Ordered, ContinueOnFailure, func() {
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		red, blue = kit.Tenant(ctx, super, kit.VirtualCluster(converted)), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(func() error { return t.Client.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed(), "the gateway knows it")
		}
	})

	It("has the namespaces of a cluster, and no control plane", func(ctx SpecContext) {
		list := &corev1.NamespaceList{}
		Expect(red.Client.List(ctx, list)).To(Succeed())
		Expect(keysOf(list.Items)).To(Equal([]string{"/default", "/kube-node-lease", "/kube-public", "/kube-system"}))
		planes := &tenancyv1alpha1.HostedControlPlaneList{}
		Expect(super.Client.List(ctx, planes, client.InNamespace(red.Key()))).To(Succeed())
		Expect(planes.Items).To(BeEmpty())
		vc := red.VC.DeepCopy()
		Consistently(kit.Read(ctx, super.Client, vc)).Should(WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
			return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
		}, BeNil()), "the syncer leaves it alone")
	})

	It("runs the manifests that a hosted tenant runs, with kubectl", func(ctx SpecContext) {
		hosted := tenant(ctx)
		for _, p := range []programs{programsWith(gatewayKubeconfig(ctx, red)), programsOf(ctx, hosted)} {
			Expect(p.apply(ctx, "web", webManifest)).To(Succeed())
			p.does(ctx, "successfully rolled out", "rollout", "status", "deployment/web", "-n", "web", "--timeout=60s")
			p.does(ctx, "web-", "get", "pods", "--all-namespaces", "-o", "wide")
			p.does(ctx, "scaled", "scale", "deployment/web", "-n", "web", "--replicas=1")
			p.does(ctx, "replicas", "explain", "deployment.spec")
			p.does(ctx, "web", "describe", "service", "web", "-n", "web")
			p.does(ctx, "deleted", "delete", "namespace", "web", "--timeout=60s")
		}
	})

	It("sees only its own, in its own names", func(ctx SpecContext) {
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, configMap("default", "settings", map[string]string{"of": t.VC.Name}))
		}
		for _, t := range []*local.Tenant{red, blue} {
			list := &corev1.ConfigMapList{}
			Expect(t.Client.List(ctx, list, client.MatchingFields{"metadata.name": "settings"})).To(Succeed())
			Expect(list.Items).To(HaveExactElements(HaveField("Data", HaveKeyWithValue("of", t.VC.Name))))
		}
	})

	It("has pods that the super cluster's policies limit, also those of controllers", func(ctx SpecContext) {
		bad := kit.Pod("default", "bad", func(p *corev1.Pod) { p.Spec.NodeName = "node-0" })
		Expect(red.Client.Create(ctx, bad)).To(MatchError(ContainSubstring("may not name its node")))
		kit.Create(ctx, red.Client, deployment("default", "bad", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }))
		Eventually(func() ([]corev1.Event, error) {
			list := &corev1.EventList{}
			err := red.Client.List(ctx, list, client.InNamespace("default"))
			return list.Items, err
		}).Should(ContainElement(HaveField("Message", ContainSubstring("may not name a scheduler"))))
	})

	It("has kubeconfigs of kubectl vc, of which those with a token expire", func(ctx SpecContext) {
		for _, flags := range [][]string{nil, {"--permanent"}, {"--direct"}, {"--internal"}} {
			p := kubectlVC(ctx, append([]string{"kubeconfig", red.VC.Name, "-n", red.VC.Namespace}, flags...)...)
			Expect(p).To(succeed(), p.Err)
			programsWith([]byte(p.Out)).does(ctx, "kube-system", "get", "namespaces")
			Expect(p.Out).To(Or(ContainSubstring("token: "), ContainSubstring("client-certificate-data: ")))
			Expect(strings.Contains(p.Err, "expire")).To(Equal(!slices.Contains(flags, "--permanent")), p.Err)
		}
	})

	It("does not admit users of another tenant, nor clients without a certificate", func(ctx SpecContext) {
		door := kit.DoorOf(red.Config)
		ask := func(t *local.Tenant) int {
			GinkgoHelper()
			transport := &http.Transport{TLSClientConfig: door.TLS.Clone()}
			defer transport.CloseIdleConnections()
			if t != nil {
				pair := must(tls.X509KeyPair(t.Config.CertData, t.Config.KeyData))
				transport.TLSClientConfig.Certificates = append(transport.TLSClientConfig.Certificates, pair)
			}
			return must(local.Ask(ctx, &http.Client{Transport: transport}, door.Address, "/tenants/"+red.Key()+"/api/v1/namespaces")).Code
		}
		Expect(ask(red)).To(Equal(http.StatusOK))
		Expect(ask(blue)).To(Equal(http.StatusForbidden))
		Expect(ask(nil)).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
	})

	It("has no limits that would not be enforced", func(ctx SpecContext) {
		vc := kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.250.0.0/24" })
		kit.Create(ctx, super.Client, vc)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, vc)).To(Succeed()) })
		Eventually(kit.Read(ctx, super.Client, vc)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonInvalidSpec))
	})

	It("has the Service of its API, which comes back", func(ctx SpecContext) {
		api := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}}
		Expect(kit.Get(ctx, red.Client, api)).To(Succeed())
		Expect(api.Spec.Ports).To(HaveExactElements(And(HaveField("Name", "https"), HaveField("Port", BeEquivalentTo(443)))))
		Expect(api.Labels).To(Equal(map[string]string{"component": "apiserver", "provider": "kubernetes"}))
		ofSuper := api.DeepCopy()
		Expect(kit.Get(ctx, super.Client, ofSuper)).To(Succeed())
		Expect(ofSuper.UID).NotTo(Equal(api.UID))
		Expect(red.Client.Delete(ctx, api)).To(Succeed())
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = 2 })
		Eventually(func() error { return kit.Get(ctx, red.Client, api) }).Should(Succeed())
	})

	It("runs DaemonSets by its policy, on all nodes", func(ctx SpecContext) {
		green := kit.Tenant(ctx, super, kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun}
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll}
		}))
		var nodes corev1.NodeList
		Eventually(func() error { return green.Client.List(ctx, &nodes) }).Should(Succeed(), "the gateway knows it")
		Expect(nodes.Items).NotTo(BeEmpty())
		pod := kit.Pod("default", "a")
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}}, Spec: pod.Spec},
		}}
		Expect(red.Client.Create(ctx, set.DeepCopy())).To(MatchError(ContainSubstring("run on the nodes of the super cluster")))
		kit.Create(ctx, green.Client, set)
		Eventually(func() (int32, error) {
			err := kit.Get(ctx, green.Client, set)
			return set.Status.CurrentNumberScheduled, err
		}).Should(BeNumerically(">", 0))
		var pods corev1.PodList
		Expect(green.Client.List(ctx, &pods, client.MatchingLabels{"app": "agent"})).To(Succeed())
		Expect(pods.Items).NotTo(BeEmpty())
	})

	It("has Services, of which none gets an address that is reserved for others", func(ctx SpecContext) {
		service := func(name string) *corev1.Service {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}
		}
		served := &networkingv1.ServiceCIDRList{}
		Expect(super.Client.List(ctx, served, client.MatchingLabels{names.ServiceCIDRPool: "true"})).To(Succeed())
		pool := netip.MustParsePrefix(served.Items[0].Spec.CIDRs[0])
		for i := range 30 {
			web := service(fmt.Sprintf("web-%d", i))
			kit.Create(ctx, red.Client, web)
			Expect(pool.Contains(netip.MustParseAddr(web.Spec.ClusterIP))).To(BeFalse(), web.Spec.ClusterIP)
		}
		named := service("named")
		named.Spec.ClusterIP = pool.Addr().Next().Next().String()
		Expect(red.Client.Create(ctx, named)).To(MatchError(ContainSubstring("reserved")))
	})

	It("has CRDs and custom resources of its own, with kubectl", func(ctx SpecContext) {
		hosted := tenant(ctx)
		for _, p := range []struct {
			programs
			converted string // the cluster key of a converted tenant
		}{
			{programsWith(gatewayKubeconfig(ctx, red)), red.Key()}, {programsWith(gatewayKubeconfig(ctx, blue)), blue.Key()},
			{programs: programsOf(ctx, hosted)},
		} {
			Expect(p.apply(ctx, "crds", crdManifest)).To(Succeed())
			Eventually(func() error { // kubectl cannot wait for a CRD that has no condition yet
				_, err := p.kubectl(ctx, "wait", "--for=condition=Established", "crd/shirts.stable.example.com", "crd/houses.stable.example.com")
				return err
			}).Should(Succeed())
			// The policies of the super cluster know new types after half a minute.
			Eventually(func() error { return p.apply(ctx, "shirts", shirtManifest) }).WithTimeout(2 * kit.Soon).Should(Succeed())
			p.does(ctx, "blue", "get", "shirts")
			p.does(ctx, "shirt.stable.example.com/plain", "get", "shirts.v1.stable.example.com", "--all-namespaces", "-o", "name")
			p.does(ctx, "patched", "patch", "shirt", "plain", "--type=merge", "-p", `{"spec":{"color":"red"}}`)
			p.does(ctx, "red", "get", "sh", "plain", "-o", "jsonpath={.spec.color} {.apiVersion}")
			p.does(ctx, "stable.example.com/v1", "get", "shirt", "plain", "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].apiVersion}")
			p.does(ctx, "scaled", "scale", "shirt", "plain", "--replicas=3")
			p.does(ctx, "3", "get", "shirt", "plain", "-o", "jsonpath={.spec.replicas}")
			p.does(ctx, "the color of the shirt", "explain", "shirt.spec.color")
			p.does(ctx, "shirts.stable.example.com", "api-resources", "--api-group=stable.example.com", "-o", "name")
			p.does(ctx, "brick", "get", "houses", "-o", "name")
			p.does(ctx, "shirts.stable.example.com", "get", "crd")
			uid, err := p.kubectl(ctx, "get", "shirt", "plain", "-o", "jsonpath={.metadata.uid}")
			Expect(err).NotTo(HaveOccurred())
			Expect(p.apply(ctx, "owned", fmt.Sprintf(ownedManifest, uid))).To(Succeed())
			p.does(ctx, "stable.example.com/v1", "get", "configmap", "owned", "-o", "jsonpath={.metadata.ownerReferences[*].apiVersion}")
			if p.converted != "" { // the super cluster knows the owner, too
				owned := configMap(names.SuperNamespace(p.converted, "default"), "owned", nil)
				Expect(kit.Get(ctx, super.Client, owned)).To(Succeed())
				Expect(owned.OwnerReferences).To(HaveExactElements(HaveField("APIVersion", names.ConvertedGroup(p.converted)+"stable.example.com/v1")))
			}
			p.does(ctx, "deleted", "delete", "shirt", "plain", "--timeout=60s")
			p.does(ctx, "deleted", "delete", "crd", "shirts.stable.example.com", "houses.stable.example.com", "--timeout=60s")
		}
	})

	It("can remove finalizers in a namespace that is deleted", func(ctx SpecContext) {
		held := configMap("held", "settings", nil)
		held.Finalizers = []string{"example.com/held"}
		kit.Create(ctx, red.Client, namespaceOf("held"), held)
		inSuper := client.ObjectKey{Namespace: names.SuperNamespace(red.Key(), "held"), Name: names.ConvertedRole}
		Eventually(func() ([]string, error) {
			binding := &rbacv1.RoleBinding{}
			err := super.Client.Get(ctx, inSuper, binding)
			return binding.Finalizers, err
		}).Should(ConsistOf(names.ConvertedFinalizer))
		Expect(red.Client.Delete(ctx, namespaceOf("held"))).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, namespaceOf(inSuper.Namespace))).Should(HaveField("Status.Conditions",
			ContainElement(HaveField("Type", corev1.NamespaceFinalizersRemaining))))
		kit.Edit(ctx, red.Client, held, func(c *corev1.ConfigMap) { c.Finalizers = nil })
		kit.ShouldVanish(ctx, super.Client, namespaceOf(inSuper.Namespace))
	})

	It("leaves nothing when it is deleted, and takes nothing of others", func(ctx SpecContext) {
		gone := kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		Eventually(func() error { return gone.Client.Create(ctx, namespaceOf("mine")) }).Should(Succeed())
		kit.Create(ctx, gone.Client, configMap("mine", "settings", nil))
		p := programsWith(gatewayKubeconfig(ctx, gone))
		Expect(p.apply(ctx, "crds", crdManifest)).To(Succeed())
		Eventually(func() error { return p.apply(ctx, "shirts", shirtManifest) }).WithTimeout(2 * kit.Soon).Should(Succeed())
		removeTenant(ctx, gone.VC)
		list := &corev1.NamespaceList{}
		Expect(super.Client.List(ctx, list, client.MatchingLabels(names.OwnerLabels(gone.VC)))).To(Succeed())
		Expect(list.Items).To(BeEmpty())
		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(super.Client.List(ctx, crds, client.MatchingLabels{names.Converted: gone.Key()})).To(Succeed())
		Expect(crds.Items).To(BeEmpty())
		kit.ShouldVanish(ctx, super.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ConvertedCRDs + gone.Key()}})
		Expect(kit.Get(ctx, red.Client, namespaceOf("default"))).To(Succeed())
	})
})
