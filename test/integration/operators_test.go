package integration

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// reconciled bounds how long an operator takes to act. It lists objects again
// at intervals that grow to half a minute, while their CRD is not served.
const reconciled = 2 * time.Minute

// operator is an unmodified operator of another project.
type operator struct {
	// binary is the environment variable with its path, and certificates the flag
	// of the folder with the certificate of its webhooks, which no test calls.
	binary, certificates string
	flags                []string
}

var (
	clusterAPI = operator{"VC_CAPI_CORE", "webhook-cert-dir", []string{
		"--feature-gates=ClusterTopology=true", "--diagnostics-address=127.0.0.1:0", "--health-addr=127.0.0.1:0",
	}}
	trustManager = operator{"VC_TRUST_MANAGER", "webhook-certificate-dir", []string{
		"--leader-elect=false", "--webhook-host=127.0.0.1", "--readiness-probe-port=0", "--metrics-port=0",
	}}
)

// programsOf returns programs with the kubeconfig of a tenant's admin.
func programsOf(ctx context.Context, t *local.Tenant) programs {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}, secret)).To(Succeed())
	return programsWith(secret.Data[names.AdminKubeconfigKey])
}

// programsWith returns programs that use a kubeconfig.
func programsWith(kubeconfig []byte) programs {
	GinkgoHelper()
	p := programs{dir: kit.TempDir()}
	p.kubeconfig = filepath.Join(p.dir, "kubeconfig")
	Expect(os.WriteFile(p.kubeconfig, kubeconfig, 0o600)).To(Succeed())
	return p
}

// apply applies a manifest.
func (p programs) apply(ctx context.Context, name, manifest string) error {
	file := filepath.Join(p.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	if out, err := p.kubectl(ctx, "apply", "--filename", file); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// applied applies a manifest as soon as the tenant serves its kinds: discovery has
// them a moment after they are established.
func applied(ctx context.Context, p programs, name, manifest string) {
	GinkgoHelper()
	Eventually(p.apply).WithContext(ctx).WithArguments(name, manifest).Should(Succeed())
}

// run runs an operator until the container of specs ends. It must not end
// before. Later flags win.
func (o operator) run(ctx context.Context, p programs, more ...string) {
	GinkgoHelper()
	if os.Getenv(o.binary) == "" {
		Skip("set " + o.binary + "; make test-integration does")
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	p.write("tls/tls.crt", string(certificate))
	p.write("tls/tls.key", string(key))
	_, port, err := net.SplitHostPort(kit.FreeAddress(ctx))
	Expect(err).NotTo(HaveOccurred())
	flags := slices.Concat([]string{"--webhook-port=" + port, "--" + o.certificates + "=" + filepath.Join(p.dir, "tls")}, o.flags, more)
	session, err := gexec.Start(p.command(context.WithoutCancel(ctx), o.binary, flags...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(session).NotTo(gexec.Exit())
		session.Kill().Wait()
	})
}

// serving waits until a tenant serves CRDs.
func serving(ctx context.Context, t *local.Tenant, all []*apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	for _, d := range all {
		Eventually(kit.Read(ctx, t.Client, d)).WithTimeout(2*kit.Soon).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue)))), d.Name)
	}
}

// object returns an object of another project's kind.
func object(apiVersion, kind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// listed returns a function for Eventually that lists the objects of a kind.
func listed(ctx context.Context, t *local.Tenant, apiVersion, kind string) func() ([]unstructured.Unstructured, error) {
	return func() ([]unstructured.Unstructured, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
		err := t.Client.List(ctx, list)
		return list.Items, err
	}
}

// Objects of cert-manager.
const (
	issuer      = `{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: own, namespace: default}, spec: {selfSigned: {}}}`
	certificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: default}
spec: {secretName: web-tls, dnsNames: [web.example.com], privateKey: {algorithm: RSA}, issuerRef: {name: own}}
`
)

// within labels the VirtualClusters that CRDs are shared with.
func within(vc *tenancyv1alpha1.VirtualCluster) {
	metav1.SetMetaDataLabel(&vc.ObjectMeta, "example.com/operators", "yes")
}

const withinRange = "example.com/operators=yes"

var _ = Describe("An operator that a tenant runs on shared CRDs, trust-manager", Ordered, func() {
	const (
		bundleAPI = "trust.cert-manager.io/v1alpha1"
		team      = "team"
	)
	var (
		red, blue *local.Tenant
		d         *apiextensionsv1.CustomResourceDefinition
	)

	// prepare creates the namespace into which bundles go.
	prepare := func(ctx context.Context, t *local.Tenant) {
		GinkgoHelper()
		ns := kit.Namespace(team)
		ns.Labels = map[string]string{"roots": "wanted"}
		kit.Create(ctx, t.Client, ns)
	}
	bundle := func() *unstructured.Unstructured { return object(bundleAPI, "Bundle", "", "roots") }
	manifest := func(key string) string {
		authority, _, err := cert.GenerateSelfSignedCertKey("roots.example.com", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprintf(`
apiVersion: %s
kind: Bundle
metadata: {name: roots}
spec:
  sources: [{inLine: %q}]
  target: {configMap: {key: %s}, namespaceSelector: {matchLabels: {roots: wanted}}}
`, bundleAPI, authority, key)
	}
	roots := func() *corev1.ConfigMap { return configMap(team, "roots", nil) }
	keys := func(ctx context.Context, t *local.Tenant) func() ([]string, error) {
		return func() ([]string, error) {
			found, err := kit.Read(ctx, t.Client, roots())()
			return slices.Sorted(maps.Keys(found.Data)), err
		}
	}
	// shouldFollow changes the bundle, and waits until the operator has acted.
	shouldFollow := func(ctx context.Context, t *local.Tenant, key string) {
		GinkgoHelper()
		kit.Edit(ctx, t.Client, bundle(), func(u *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(u.Object, key, "spec", "target", "configMap", "key")).To(Succeed())
		})
		Eventually(keys(ctx, t)).WithTimeout(reconciled).Should(ConsistOf(key))
	}

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		red, blue = tenant(ctx, within), tenant(ctx, within)
		prepare(ctx, red)
		prepare(ctx, blue)
		all := trustManagerCRDs.Definitions(ctx, publishedTo(withinRange))
		for _, shared := range all {
			share(ctx, shared)
			if shared.Spec.Names.Kind == "Bundle" {
				d = shared
			}
		}
		serving(ctx, red, all)
		serving(ctx, blue, all)
		trustManager.run(ctx, programsOf(ctx, red))
	}, NodeTimeout(2*reconciled))

	It("reconciles the objects of its tenant, which pods use, and no other tenant has them", func(ctx SpecContext) {
		applied(ctx, programsOf(ctx, red), "bundle", manifest("first"))
		Eventually(keys(ctx, red)).WithTimeout(reconciled).Should(ConsistOf("first"))
		Eventually(kit.Read(ctx, red.Client, bundle())).Should(WithTransform(text, ContainSubstring(`"reason":"Synced"`)))

		kit.Create(ctx, red.Client, kit.Pod(team, "reader", withConfigMap("roots")))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, team).Should(ConsistOf("reader"))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, roots()))).Should(HaveField("Data", HaveKey("first")))

		Expect(listed(ctx, blue, bundleAPI, "Bundle")()).To(BeEmpty())
		kit.ShouldStayAbsent(ctx, blue.Client, roots())
	}, NodeTimeout(2*reconciled))

	// survives checks that what the operator has made survives while its CRD is
	// not served, and that it continues afterwards.
	survives := func(ctx context.Context, key string, take, giveBack func()) {
		GinkgoHelper()
		was, err := kit.Read(ctx, red.Client, bundle())()
		Expect(err).NotTo(HaveOccurred())
		made, err := kit.Read(ctx, red.Client, roots())()
		Expect(err).NotTo(HaveOccurred())
		take()
		Eventually(sharedCondition(ctx, red)).WithTimeout(2 * kit.Soon).Should(And(HavePrefix("False/ObjectsLeft"), ContainSubstring(d.Name+"/")))
		Eventually(kit.Get).WithContext(ctx).WithArguments(red.Client, bundle()).Should(MatchError(apierrors.IsNotFound, "not served"))
		Consistently(kit.Read(ctx, red.Client, roots())).Should(And(HaveField("UID", made.UID), HaveField("Data", Equal(made.Data))))
		giveBack()
		Eventually(kit.Read(ctx, red.Client, bundle())).WithTimeout(2 * kit.Soon).Should(HaveField("GetUID()", was.GetUID()))
		shouldFollow(ctx, red, key)
	}

	It("continues after a policy of the tenant that uses no shared CRDs", func(ctx SpecContext) {
		survives(ctx, "second",
			func() { choose(ctx, red, sharedcrds.NeverUseSystemCRDUnlessForced) },
			func() { choose(ctx, red, sharedcrds.LocalCRDFirst) })
	}, NodeTimeout(2*reconciled))

	It("continues after the CRD was recalled and published again", func(ctx SpecContext) {
		survives(ctx, "third",
			func() { kit.Edit(ctx, super.Client, d, publishedTo("")) },
			func() { kit.Edit(ctx, super.Client, d, publishedTo(withinRange)) })
	}, NodeTimeout(2*reconciled))

	It("does not notice that the shared CRD replaces the tenant's own, and that this comes back", func(ctx SpecContext) {
		green := tenant(ctx)
		prepare(ctx, green)
		own := trustManagerCRDs.Definitions(ctx, func(d *apiextensionsv1.CustomResourceDefinition) {
			spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			spec.Properties["contact"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		})
		for _, d := range own {
			kit.Create(ctx, green.Client, d)
		}
		serving(ctx, green, own)
		trustManager.run(ctx, programsOf(ctx, green))
		applied(ctx, programsOf(ctx, green), "bundle", manifest("own"))
		kit.Edit(ctx, green.Client, bundle(), func(u *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(u.Object, "jane", "spec", "contact")).To(Succeed())
		})
		Eventually(keys(ctx, green)).WithTimeout(reconciled).Should(ConsistOf("own"))

		choose(ctx, green, sharedcrds.SystemCRDFirst)
		kit.Edit(ctx, super.Client, green.VC, within)
		replaced := func() (map[string]string, error) {
			found, err := kit.Read(ctx, green.Client, d)()
			return found.Labels, err
		}
		Eventually(sharedCondition(ctx, green)).WithTimeout(2 * kit.Soon).Should(HavePrefix("True/Shared"))
		Expect(replaced()).To(HaveKey(names.SharedCRD))
		shouldFollow(ctx, green, "shared")
		choose(ctx, green, sharedcrds.LocalCRDFirst)
		Eventually(replaced).WithTimeout(2 * kit.Soon).ShouldNot(HaveKey(names.SharedCRD))
		shouldFollow(ctx, green, "again")
		Expect(kit.Read(ctx, green.Client, bundle())()).To(field("jane", "spec", "contact"))
	}, NodeTimeout(3*reconciled))
})

var _ = Describe("An operator that a tenant runs on shared CRDs, Cluster API's", Ordered, func() {
	const (
		clusterAPIVersion = "cluster.x-k8s.io/v1beta2"
		providerVersion   = sharedGroup + "/v1"
		// The user's objects: a cluster with two machines of a provider.
		manifest = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: shop, namespace: default}
spec: {controlPlaneEndpoint: {host: shop.example.com, port: 6443}}
---
apiVersion: shared.example.com/v1
kind: PlainMachineTemplate
metadata: {name: small, namespace: default}
spec: {template: {spec: {size: small}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers, namespace: default, labels: {cluster.x-k8s.io/cluster-name: shop}}
spec:
  clusterName: shop
  replicas: 2
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}
  selector: {matchLabels: {cluster.x-k8s.io/cluster-name: shop}}
  template:
    metadata: {labels: {cluster.x-k8s.io/cluster-name: shop}}
    spec:
      clusterName: shop
      bootstrap: {dataSecretName: none}
      infrastructureRef: {apiGroup: shared.example.com, kind: PlainMachineTemplate, name: small}
`
	)
	var (
		red, blue *local.Tenant
		user      programs
		all       []*apiextensionsv1.CustomResourceDefinition
	)

	// provider returns a CRD of a provider, which has the contract that the
	// operator finds in its label.
	provider := func(kind string) *apiextensionsv1.CustomResourceDefinition {
		return sharedDefinition(strings.ToLower(kind), nil, []string{"v1"}, publishedTo(withinRange), func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Names.Kind = kind
			d.Labels = map[string]string{clusterAPIVersion: "v1"}
			root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
			root.Properties, root.XPreserveUnknownFields = nil, new(true)
		})
	}
	definition := func(kind string) *apiextensionsv1.CustomResourceDefinition {
		return all[slices.IndexFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind == kind })]
	}
	shouldHaveMachines := func(ctx context.Context, count int) {
		GinkgoHelper()
		Eventually(listed(ctx, red, clusterAPIVersion, "Machine")).WithTimeout(reconciled).Should(HaveLen(count))
		Eventually(listed(ctx, red, providerVersion, "PlainMachine")).WithTimeout(reconciled).Should(
			And(HaveLen(count), HaveEach(HaveField("Object", HaveKeyWithValue("spec", HaveKeyWithValue("size", "small"))))))
	}

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		red, blue = tenant(ctx, within), tenant(ctx, within)
		all = append(clusterAPICRDs.Definitions(ctx, clusterAPIInstalled, publishedTo(withinRange)), provider("PlainMachine"), provider("PlainMachineTemplate"))
		for _, d := range all {
			share(ctx, d)
		}
		serving(ctx, red, all)
		serving(ctx, blue, all)
		user = programsOf(ctx, red)
		clusterAPI.run(ctx, user)
	}, NodeTimeout(2*reconciled))

	It("reconciles the objects of its tenant, and no other tenant has them", func(ctx SpecContext) {
		for _, d := range all[:len(all)-2] {
			Expect(kit.Read(ctx, red.Client, d)()).To(servedVersions("v1beta2"), "the version that is stored, as there is a conversion webhook")
		}
		applied(ctx, user, "shop", manifest)
		shouldHaveMachines(ctx, 2)
		for _, kind := range []string{"Cluster", "MachineDeployment", "MachineSet", "Machine"} {
			Expect(listed(ctx, blue, clusterAPIVersion, kind)()).To(BeEmpty(), kind)
		}
		user.does(ctx, "scaled", "scale", "machinedeployment", "workers", "--replicas=1")
		shouldHaveMachines(ctx, 1)
		Expect(user.apply(ctx, "invalid", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: two}, spec: {paused: perhaps}}`)).
			To(MatchError(ContainSubstring("must be of type boolean")))
	}, NodeTimeout(3*reconciled))

	It("continues after a CRD was recalled and published again", func(ctx SpecContext) {
		d := definition("MachineDeployment")
		kit.Edit(ctx, super.Client, d, publishedTo(""))
		Eventually(sharedCondition(ctx, red)).WithTimeout(2 * kit.Soon).Should(And(HavePrefix("False/ObjectsLeft"), ContainSubstring(d.Name+"/")))
		Consistently(listed(ctx, red, clusterAPIVersion, "Machine")).Should(HaveLen(1))
		kit.Edit(ctx, super.Client, d, publishedTo(withinRange))
		Eventually(user.kubectl).WithContext(ctx).WithArguments("scale", "machinedeployment", "workers", "--replicas=3").
			WithTimeout(2 * kit.Soon).Should(ContainSubstring("scaled"))
		shouldHaveMachines(ctx, 3)
	}, NodeTimeout(3*reconciled))

	It("deletes all that belongs to an object", func(ctx SpecContext) {
		user.does(ctx, "deleted", "delete", "cluster", "shop", "--wait=false")
		for kind, apiVersion := range map[string]string{
			"Cluster": clusterAPIVersion, "MachineDeployment": clusterAPIVersion, "MachineSet": clusterAPIVersion,
			"Machine": clusterAPIVersion, "PlainMachine": providerVersion,
		} {
			Eventually(listed(ctx, red, apiVersion, kind)).WithTimeout(reconciled).Should(BeEmpty(), kind)
		}
	}, NodeTimeout(3*reconciled))
})
