package escapes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// sharedTo selects the tenants of one spec.
const sharedTo = "escapes.example.com/shared"

// gadgets returns a CRD whose objects have the field color.
func gadgets(plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".escapes.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "escapes.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
				}},
			}},
		},
	}
}

// sharedWith publishes a CRD to the tenants of a spec.
func sharedWith(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, spec string, forced bool) {
	GinkgoHelper()
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.ApplicableRange, sharedTo+"="+spec)
	if forced {
		metav1.SetMetaDataLabel(&d.ObjectMeta, names.CRDSharingPolicy, names.Forced)
	}
	kit.Create(ctx, super.Client, d)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, d))).To(Succeed()) })
}

// sharer returns a change of a VirtualCluster by which a CRD reaches it.
func sharer(spec string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) { metav1.SetMetaDataLabel(&vc.ObjectMeta, sharedTo, spec) }
}

// unmodified creates a tenant with an external control plane, which admits what
// a hosted one refuses: a kube-apiserver of another vc-standalone.
func unmodified(ctx context.Context, spec string) *local.Tenant {
	GinkgoHelper()
	dir := kit.TempDir()
	host, err := local.Start(ctx, dir, "--syncer=false", "--agent=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
	kubeconfig, err := os.ReadFile(filepath.Join(dir, "super.kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	there := &local.Tenant{Client: host.Client, Config: host.Config, VC: kit.VirtualCluster()}
	return kit.ExternalTenant(ctx, super, kit.VirtualCluster(sharer(spec)), there, kubeconfig)
}

// clientOf returns a client.
func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	c, err := local.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// signedFor returns the configuration of a user whose certificate the tenant's
// control plane signs.
func signedFor(ctx context.Context, t *local.Tenant, user string) *rest.Config {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	Expect(err).NotTo(HaveOccurred())
	request, err := cert.MakeCSR(key, &pkix.Name{CommonName: user, Organization: []string{"mallory:admins"}}, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	kit.Create(ctx, t.Client, csr, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mallory-admins"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "mallory:admins"}},
	})
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
	Expect(t.Client.SubResource("approval").Update(ctx, csr)).To(Succeed())
	Eventually(kit.Read(ctx, t.Client, csr)).Should(HaveField("Status.Certificate", Not(BeEmpty())))
	Expect(kit.Get(ctx, t.Client, csr)).To(Succeed())
	config := rest.CopyConfig(t.Config)
	config.CertData, config.KeyData = csr.Status.Certificate, keyPEM
	return config
}

// recorded returns the CRDs of a tenant that the syncer has recorded.
func recorded(ctx context.Context, t *local.Tenant) func() (map[string]any, error) {
	return func() (map[string]any, error) {
		found, all := &corev1.Secret{}, map[string]any{}
		err := super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.SharedCRDsSecret}, found)
		if client.IgnoreNotFound(err) != nil || err != nil {
			return all, client.IgnoreNotFound(err)
		}
		return all, json.Unmarshal(found.Data["crds"], &all)
	}
}

var _ = Describe("Shared CRDs", func() {
	attack("a CRD of the tenant's own with the label of a shared one", "idea: the syncer would delete what it seems to have made",
		func(ctx SpecContext) {
			mallory := tenant(ctx, sharer("forged"))
			other := gadgets("others")
			sharedWith(ctx, other, "forged", false)
			copied := other.DeepCopy()
			kit.ShouldExist(ctx, mallory.Client, copied)

			own := gadgets("owns")
			own.Annotations = map[string]string{names.ApplicableRange: names.AllTenants}
			metav1.SetMetaDataLabel(&own.ObjectMeta, names.CRDSharingPolicy, names.Forced)
			marked := own.DeepCopy()
			metav1.SetMetaDataLabel(&marked.ObjectMeta, names.SharedCRD, copied.Labels[names.SharedCRD])
			reserved := MatchError(ContainSubstring("reserved"))
			Expect(mallory.Client.Create(ctx, marked)).To(reserved)
			kit.Create(ctx, mallory.Client, own)
			marked = own.DeepCopy()
			metav1.SetMetaDataLabel(&marked.ObjectMeta, names.SharedCRD, copied.Labels[names.SharedCRD])
			Expect(mallory.Client.Patch(ctx, marked, client.MergeFrom(own))).To(reserved)
			Consistently(kit.Get).WithContext(ctx).WithArguments(mallory.Client, own).Should(Succeed())
			Expect(own.DeletionTimestamp).To(BeNil())
			Expect(recorded(ctx, mallory)()).NotTo(HaveKey(own.Name))
		})

	attack("the name of the platform, by impersonation and in a certificate, to change a forced CRD",
		"Kubernetes documentation: an admin can impersonate every user, and signs client certificates", func(ctx SpecContext) {
			mallory := tenant(ctx, sharer("platform"))
			d := gadgets("platforms")
			sharedWith(ctx, d, "platform", true)
			copied := d.DeepCopy()
			kit.ShouldExist(ctx, mallory.Client, copied)
			renaming := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"names":{"shortNames":["mine"]}}}`))
			for _, who := range []string{"vc-platform", "system:apiserver", "system:serviceaccount:kube-system:generic-garbage-collector"} {
				as := rest.CopyConfig(mallory.Config)
				as.Impersonate = rest.ImpersonationConfig{UserName: who, Groups: []string{"system:masters"}}
				Expect(clientOf(as).Patch(ctx, copied.DeepCopy(), renaming)).To(MatchError(ContainSubstring("the platform forces")))
				Expect(clientOf(as).Delete(ctx, copied.DeepCopy())).To(MatchError(ContainSubstring("the platform forces")))
			}
			signed := clientOf(signedFor(ctx, mallory, "vc-platform"))
			// Until the apiserver knows the binding, it forbids this user everything.
			Eventually(func() error { return signed.Patch(ctx, copied.DeepCopy(), renaming) }).Should(MatchError(ContainSubstring("the platform forces")))
		})

	attack("a Secret of the tenant with the name of the records", "idea: a record that the tenant writes", func(ctx SpecContext) {
		mallory := tenant(ctx, sharer("records"))
		own := gadgets("recordeds")
		kit.Create(ctx, mallory.Client, own)
		content := fmt.Sprintf(`{%q:{"phase":"Left","uid":%q,"mark":"x"}}`, own.Name, own.UID)
		for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			kit.Create(ctx, mallory.Client, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: names.SharedCRDsSecret}, StringData: map[string]string{"crds": content},
			})
		}
		sharedWith(ctx, gadgets("nudges"), "records", false)
		kit.ShouldExist(ctx, mallory.Client, gadgets("nudges"))
		found := own.DeepCopy()
		Expect(kit.Get(ctx, mallory.Client, found)).To(Succeed())
		Expect(found.Spec.Versions[0].Served).To(BeTrue())
		Expect(recorded(ctx, mallory)()).NotTo(HaveKey(own.Name))
	})

	attack("a forced copy that is edited and deleted in a loop", "idea: another tenant's CRDs wait", func(ctx SpecContext) {
		mallory, alice := unmodified(ctx, "loop"), tenant(ctx, sharer("loop"))
		d := gadgets("loops")
		sharedWith(ctx, d, "loop", true)
		kit.ShouldExist(ctx, mallory.Client, d.DeepCopy())
		looping, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; looping.Err() == nil; i++ {
				found := d.DeepCopy()
				if kit.Get(looping, mallory.Client, found) != nil {
					continue
				}
				found.Labels, found.Spec.Names.ShortNames = nil, []string{fmt.Sprintf("s%d", i)}
				_ = mallory.Client.Update(looping, found) // the syncer may be faster
				if i%10 == 0 {
					_ = mallory.Client.Delete(looping, found)
				}
			}
		}()
		next := gadgets("nexts")
		sharedWith(ctx, next, "loop", false)
		kit.ShouldExist(ctx, alice.Client, next.DeepCopy())
		end()
		<-ended
		Eventually(kit.Read(ctx, mallory.Client, d)).WithTimeout(2 * kit.Soon).Should(And(
			HaveField("Labels", HaveKey(names.SharedCRD)), HaveField("Spec.Names.ShortNames", BeEmpty())))
	})

	attack("a copy that is swapped for a CRD of the tenant's own before it is recalled", "idea: the syncer deletes by name", func(ctx SpecContext) {
		mallory := unmodified(ctx, "swap")
		d := gadgets("swaps")
		sharedWith(ctx, d, "swap", false)
		copied := d.DeepCopy()
		kit.ShouldExist(ctx, mallory.Client, copied)
		Expect(super.Client.Delete(ctx, d)).To(Succeed())
		Expect(client.IgnoreNotFound(mallory.Client.Delete(ctx, copied))).To(Succeed())
		own := gadgets("swaps")
		own.Labels = map[string]string{names.SharedCRD: copied.Labels[names.SharedCRD]}
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(own).Should(Succeed())
		Eventually(recorded(ctx, mallory)).WithTimeout(2 * kit.Soon).ShouldNot(HaveKey(d.Name))
		Consistently(kit.Read(ctx, mallory.Client, own)).Should(And(
			HaveField("UID", own.UID), HaveField("DeletionTimestamp", BeNil()), HaveField("Spec.Versions", HaveEach(HaveField("Served", true)))))
	})

	attack("answers with control characters and huge texts, UIDs and resource versions", "idea: a condition, a log and a Secret of the platform have what a tenant writes",
		func(ctx SpecContext) {
			mallory, hostile := hostileTenant(ctx, sharer("lies"))
			alice := tenant(ctx, sharer("lies"))
			own := gadgets("lies")
			kit.Create(ctx, mallory.Client, own)
			kit.Edit(ctx, mallory.Client, kit.Namespace(metav1.NamespaceSystem), func(ns *corev1.Namespace) {
				metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.CRDPolicy, string(sharedcrds.SystemCRDFirst))
			})
			text := strings.Repeat("\x1b[2J\r\n\u202e forged: true\x00", 1<<15)
			status, err := json.Marshal(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text, Reason: metav1.StatusReason(text)})
			Expect(err).NotTo(HaveOccurred())
			definition := local.Path("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + own.Name)
			undo := hostile.On(definition, local.Status(http.StatusInternalServerError, string(status)))
			sharedWith(ctx, gadgets("lies"), "lies", false)
			clean := And(Not(BeEmpty()), WithTransform(func(s []rune) int { return len(s) }, BeNumerically("<", 17<<10)),
				Not(ContainElement(Not(Satisfy(unicode.IsGraphic)))))
			message := func() ([]rune, error) {
				vc, err := kit.Read(ctx, super.Client, mallory.VC)()
				c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSharedCRDs)
				if c == nil {
					return nil, err
				}
				return []rune(c.Message), err
			}
			Eventually(message).Should(clean)

			var answers atomic.Int64
			answering(hostile, definition, local.Rewrite(func(d map[string]any) {
				metadata, _ := d["metadata"].(map[string]any)
				count := answers.Add(1)
				metadata["uid"] = fmt.Sprint("uid\x1b", count) + strings.Repeat("u", int(count%2)<<20)
				metadata["resourceVersion"] = fmt.Sprint("\x00", count)
			}))
			undo() // not before, or the syncer might get the true answer in between
			next := gadgets("truths")
			sharedWith(ctx, next, "lies", false)
			kit.ShouldExist(ctx, alice.Client, next)
			Eventually(answers.Load).WithTimeout(2 * kit.Soon).Should(BeNumerically(">", 3))
			Eventually(message).Should(clean)
			Expect(own.UID).NotTo(BeEmpty())
			found := own.DeepCopy()
			Expect(kit.Get(ctx, mallory.Client, found)).To(Succeed())
			Expect(found.Spec).To(Equal(own.Spec), "what cannot be identified is not written")
			secret := &corev1.Secret{}
			err = super.Client.Get(ctx, client.ObjectKey{Namespace: mallory.Key(), Name: names.SharedCRDsSecret}, secret)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(len(secret.Data["crds"])).To(BeNumerically("<", 64<<10))
		})

	attack("hundreds of CRDs of the tenant's own, one of the largest size, and one that is about to be replaced",
		"Kubernetes documentation: an object has 1.5 MB; idea: the platform cannot keep it, or has no time for others", func(ctx SpecContext) {
			mallory, alice := tenant(ctx, sharer("flood")), tenant(ctx, sharer("flood"))
			var creating errgroup.Group
			creating.SetLimit(8)
			for i := range 100 {
				creating.Go(func() error { return mallory.Client.Create(ctx, gadgets(fmt.Sprintf("floods%d", i))) })
			}
			random := make([]byte, 1<<20)
			_, err := rand.Read(random)
			Expect(err).NotTo(HaveOccurred())
			largest := gadgets("largests")
			largest.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = base64.StdEncoding.EncodeToString(random)
			kit.Create(ctx, mallory.Client, largest)
			kit.Edit(ctx, mallory.Client, kit.Namespace(metav1.NamespaceSystem), func(ns *corev1.Namespace) {
				metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.CRDPolicy, string(sharedcrds.SystemCRDFirst))
			})
			sharedWith(ctx, gadgets("largests"), "flood", false)
			sharedWith(ctx, gadgets("floods0"), "flood", false)
			kit.ShouldExist(ctx, alice.Client, gadgets("largests"))
			kit.ShouldExist(ctx, alice.Client, gadgets("floods0"))
			Expect(creating.Wait()).To(Succeed())
			Eventually(kit.Read(ctx, mallory.Client, gadgets("floods0"))).WithTimeout(2 * kit.Soon).Should(HaveField("Labels", HaveKey(names.SharedCRD)))
			Eventually(kit.Read(ctx, super.Client, mallory.VC)).Should(kit.HaveCondition(tenancyv1alpha1.ConditionSharedCRDs, metav1.ConditionFalse, tenancyv1alpha1.ReasonConflict))
			Expect(kit.Read(ctx, mallory.Client, largest)()).To(HaveField("Labels", Not(HaveKey(names.SharedCRD))))
		})
})
