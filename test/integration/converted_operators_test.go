package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// bundleManifest distributes a certificate to all namespaces with a label.
const bundleManifest = `
apiVersion: trust.cert-manager.io/v1alpha1
kind: Bundle
metadata: {name: roots}
spec:
  sources: [{inLine: %q}]
  target: {configMap: {key: roots.pem}, namespaceSelector: {matchLabels: {roots: wanted}}}
`

// emptyBundle is valid by its schema alone.
const emptyBundle = "{apiVersion: trust.cert-manager.io/v1alpha1, kind: Bundle, metadata: {name: empty}, spec: {sources: [{useDefaultCAs: false}]}}"

// installation is an operator in a tenant, which the operator's own Helm chart
// has installed, as its documentation says.
type installation struct {
	tenant *local.Tenant
	// admin are the programs of the tenant's admin.
	admin programs
	// authority is what the tenant distributes.
	authority string
}

const (
	operatorNamespace = "cert-manager"
	operatorName      = "trust-manager"
)

// install installs the unmodified chart.
func (i *installation) install(ctx context.Context, chart string) {
	GinkgoHelper()
	i.admin.helm(ctx, "install", operatorName, chart, "-n", operatorNamespace, "--create-namespace",
		"--set", "app.webhook.tls.helmCert.enabled=true", "--wait", "--timeout=2m")
	i.admin.does(ctx, "deployed", "get", "secrets", "-n", operatorNamespace, "-l", "owner=helm", "-o", "jsonpath={.items[*].metadata.labels.status}")
	i.shouldBeReady(ctx, "1/1")
}

// shouldBeReady waits until the Deployment says how many of its pods are ready: Helm
// waits for its ReplicaSet.
func (i *installation) shouldBeReady(ctx context.Context, pods string) {
	GinkgoHelper()
	Eventually(i.admin.kubectl).WithContext(ctx).WithArguments("get", "deployment", operatorName, "-n", operatorNamespace).
		WithTimeout(reconciled).Should(ContainSubstring(pods))
}

// run runs the operator in the place of the pod of its Deployment, since nodes are
// simulated: as its service account, with the certificate of its webhook, at the
// address of the pod.
func (i *installation) run(ctx context.Context) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(i.tenant.Client.List(ctx, list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app": operatorName})).To(Succeed())
	Expect(list.Items).To(HaveLen(1))
	pod := &list.Items[0]
	Expect(pod.Spec.ServiceAccountName).To(Equal(operatorName))
	token, err := i.admin.kubectl(ctx, "create", "token", operatorName, "-n", operatorNamespace)
	Expect(err).NotTo(HaveOccurred(), token)
	as := programsWith(withToken(i.admin.kubeconfig, strings.TrimSpace(token)))
	pair := &corev1.Secret{}
	Expect(i.tenant.Client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorName + "-tls"}, pair)).To(Succeed())
	as.write("pod/tls.crt", string(pair.Data[corev1.TLSCertKey]))
	as.write("pod/tls.key", string(pair.Data[corev1.TLSPrivateKeyKey]))

	address := kit.PodAddress(ctx)
	trustManager.run(ctx, as, "--webhook-host="+address, "--webhook-port=6443", "--webhook-certificate-dir="+filepath.Join(as.dir, "pod"))
	kit.SetPodAddress(ctx, super, kit.SuperOf(i.tenant, pod), address)
}

// withToken returns the kubeconfig in a file with a token instead of its user.
func withToken(file, token string) []byte {
	GinkgoHelper()
	config := must(clientcmd.LoadFromFile(file))
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	return must(clientcmd.Write(*config))
}

// shouldDistribute waits until a namespace has what the tenant distributes.
func (i *installation) shouldDistribute(ctx context.Context, ns string) {
	GinkgoHelper()
	Eventually(kit.Read(ctx, i.tenant.Client, configMap(ns, "roots", nil))).WithTimeout(reconciled).Should(
		HaveField("Data", HaveKeyWithValue("roots.pem", ContainSubstring(strings.TrimSpace(i.authority)))))
}

var _ = Describe("A Helm chart and its operator in a hosted and in a converted tenant, beside each other", Ordered, func() {
	var (
		chart string
		all   = map[string]*installation{"hosted": {}, "converted": {}}
	)

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		chart = filepath.Join(trustManagerCRDs.Dir(ctx), "deploy", "charts", "trust-manager")
		hosted, without := tenant(ctx), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		Eventually(func() error { return without.Client.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed(), "the gateway knows it")
		*all["hosted"] = installation{tenant: hosted, admin: programsOf(ctx, hosted)}
		*all["converted"] = installation{tenant: without, admin: programsWith(gatewayKubeconfig(ctx, without))}
		for kind, i := range all {
			i.authority = string(must(pki.NewAuthority(kind+".example.com", time.Hour, time.Now())).CertPEM)
			i.install(ctx, chart)
			i.run(ctx)
		}
	}, NodeTimeout(kit.Longest))

	for _, kind := range []string{"hosted", "converted"} {
		It("runs as its service account in the "+kind+" one, with its webhook", func(ctx SpecContext) {
			i := all[kind]
			for _, ns := range []string{"first", "other"} {
				i.admin.does(ctx, "created", "create", "namespace", ns)
			}
			i.admin.does(ctx, "labeled", "label", "namespace", "first", "roots=wanted")
			// Its webhook answers as soon as the endpoints of its Service are known.
			Eventually(i.admin.apply).WithContext(ctx).WithArguments("bundle", fmt.Sprintf(bundleManifest, i.authority)).
				WithTimeout(reconciled).Should(Succeed())
			i.shouldDistribute(ctx, "first")
			// The operator writes the status after the ConfigMaps.
			Eventually(i.admin.kubectl).WithContext(ctx).WithArguments("get", "bundle", "roots", "-o",
				`jsonpath={.status.conditions[?(@.type=="Synced")].status}`).WithTimeout(reconciled).Should(ContainSubstring("True"))
			kit.ShouldStayAbsent(ctx, i.tenant.Client, configMap("other", "roots", nil))
			Expect(i.admin.apply(ctx, "empty", emptyBundle)).To(MatchError(ContainSubstring("must define at least one source")), "its webhook rejects it")
		}, NodeTimeout(3*reconciled))
	}

	It("serves each tenant its own, by the same names", func(ctx SpecContext) {
		for _, i := range all {
			i.shouldDistribute(ctx, "first")
			i.admin.does(ctx, "labeled", "label", "namespace", "other", "roots=wanted")
			i.shouldDistribute(ctx, "other")
			Expect(i.tenant.Client.Delete(ctx, configMap("first", "roots", nil))).To(Succeed())
			i.shouldDistribute(ctx, "first")
		}
	}, NodeTimeout(3*reconciled))

	It("is upgraded, rolled back and uninstalled", func(ctx SpecContext) {
		for _, i := range all {
			i.admin.helm(ctx, "upgrade", operatorName, chart, "-n", operatorNamespace, "--reuse-values", "--set", "replicaCount=2", "--wait", "--timeout=2m")
			i.shouldBeReady(ctx, "2/2")
			i.admin.helm(ctx, "rollback", operatorName, "1", "-n", operatorNamespace, "--wait", "--timeout=2m")
			i.shouldBeReady(ctx, "1/1")
			i.admin.helm(ctx, "uninstall", operatorName, "-n", operatorNamespace, "--wait", "--timeout=2m")
			// The garbage collector deletes the pods after Helm has seen the Deployment go.
			Eventually(i.admin.kubectl).WithContext(ctx).WithArguments("get", "all,validatingwebhookconfigurations,clusterroles,clusterrolebindings,roles,rolebindings",
				"-n", operatorNamespace, "-l", "app.kubernetes.io/instance="+operatorName, "-o", "name").
				WithTimeout(reconciled).Should(WithTransform(strings.TrimSpace, Or(BeEmpty(), Equal("No resources found"))))
			i.admin.does(ctx, "roots", "get", "bundles", "-o", "name")
		}
	}, NodeTimeout(3*reconciled))
})
