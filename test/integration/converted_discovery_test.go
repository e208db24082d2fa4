package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// requestOf returns a certificate signing request.
func requestOf(name, signer string) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	data, err := cert.MakeCSR(key, &pkix.Name{CommonName: "anna"}, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: data, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

var _ = Describe("The API of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *kit.Converted

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		red, blue = converter.Tenant(ctx, "team-0a1b2c-api"), converter.Tenant(ctx, "team-9d8e7f-api")
		kit.Create(ctx, red.Client, namespaceOf("shop"))
	})

	It("has custom resources with namespaces as soon as there is a CRD", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gears.soon.example.com"}}
		crd.Spec.Group, crd.Spec.Scope = "soon.example.com", apiextensionsv1.NamespaceScoped
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gears", Singular: "gear", Kind: "Gear", ListKind: "GearList"}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}}
		permit(ctx, red, crd.Spec.Group)
		kit.Create(ctx, red.Client, crd)
		DeferCleanup(func(ctx SpecContext) { Expect(red.Client.Delete(ctx, crd)).To(Succeed()) })
		Eventually(func(g Gomega) {
			g.Expect(kit.Get(ctx, red.Client, crd)).To(Succeed())
			g.Expect(apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)).To(BeTrue())
		}).Should(Succeed())
		body := `{"apiVersion":"soon.example.com/v1","kind":"Gear","metadata":{"name":"a"}}`
		reply := red.Ask(ctx, http.MethodPost, "/apis/soon.example.com/v1/namespaces/shop/gears", body)
		Expect(reply.Code).To(Equal(http.StatusCreated), "the policies of the super cluster know the schema seconds later: %s", reply.Body)
		Expect(red.Ask(ctx, http.MethodGet, "/apis/soon.example.com/v1/gears", "").Body).To(ContainSubstring(`"namespace":"shop"`))
	})

	It("lists the APIServices of the versions that it has", func(ctx SpecContext) {
		services := &unstructured.UnstructuredList{}
		services.SetGroupVersionKind(apiServiceKind)
		Expect(blue.Client.List(ctx, services)).To(Succeed())
		var found []string
		for _, service := range services.Items {
			found = append(found, service.GetName())
		}
		Expect(found).To(ContainElements("v1.", "v1.apps", "v1.apiregistration.k8s.io", "v1.certificates.k8s.io", "v2.autoscaling"))
		Expect(found).NotTo(ContainElement(ContainSubstring("tenancy")))
		Expect(blue.Client.List(ctx, services, client.MatchingFields{"metadata.name": "v1.apps"})).To(Succeed())
		Expect(services.Items).To(HaveLen(1))
		Expect(blue.Client.List(ctx, services, client.MatchingLabels{"a": "b"})).To(Succeed())
		Expect(services.Items).To(BeEmpty())
		p := programs{dir: kit.TempDir(), kubeconfig: blue.Kubeconfig()}
		p.does(ctx, "v1.apps", "get", "apiservices")
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(apiServiceKind)
		Expect(blue.Client.List(ctx, metadata)).To(Succeed())
		Expect(metadata.Items).To(HaveLen(len(found)))
	})

	It("does not send requests to servers of the tenant", func(ctx SpecContext) {
		const path = "/apis/apiregistration.k8s.io/v1/apiservices"
		body := `{"metadata":{"name":"v1.mine.example.com"},"spec":{"group":"mine.example.com","version":"v1","service":{"namespace":"shop","name":"a"}}}`
		for method, at := range map[string]string{
			http.MethodPost: path, http.MethodPut: path + "/v1.apps", http.MethodDelete: path + "/v1.apps",
		} {
			reply := red.Ask(ctx, method, at, body)
			Expect(reply.Code).To(Equal(http.StatusForbidden), method)
			Expect(reply.Body).To(ContainSubstring("adds API groups by CRDs"), method)
		}
		Expect(red.Ask(ctx, http.MethodGet, path+"?watch=1", "").Code).To(Equal(http.StatusForbidden))
	})

	It("has certificate signing requests, with the user of the tenant", func(ctx SpecContext) {
		request := requestOf("anna", "example.com/signer")
		request.Spec.Username = "admin"
		other := requestOf("bob", certificatesv1.KubeAPIServerClientSignerName)
		kit.Create(ctx, red.As("anna", "system:masters").Client, request, other)
		Expect(request.Spec.Username).To(Equal("anna"))
		Expect(request.Spec.Groups).To(ContainElement("system:masters"))
		var found certificatesv1.CertificateSigningRequestList
		Expect(red.Client.List(ctx, &found, client.MatchingFields{"spec.signerName": "example.com/signer"})).To(Succeed())
		Expect(keysOf(found.Items)).To(Equal([]string{"/anna"}))
		Expect(blue.Client.List(ctx, &found)).To(Succeed())
		Expect(found.Items).To(BeEmpty())

		kit.Edit(ctx, red.Client, request, func(r *certificatesv1.CertificateSigningRequest) {
			r.Annotations, r.Spec.Username, r.Status.Certificate = map[string]string{"a": "b"}, "admin", []byte("x")
		})
		Expect(request.Annotations).To(HaveKey("a"))
		Expect(request.Spec.Username).To(Equal("anna"))
		Expect(request.Status.Certificate).To(BeEmpty())

		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		Expect(red.Client.SubResource("approval").Update(ctx, request)).To(Succeed())
		Expect(request.Status.Conditions[0].LastUpdateTime).NotTo(BeZero())
		signed, _, err := cert.GenerateSelfSignedCertKey("anna", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		request.Status.Certificate = signed
		Expect(red.Client.Status().Update(ctx, request)).To(Succeed())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":null}}`))
		Expect(red.Client.SubResource("approval").Patch(ctx, request, patch)).To(MatchError(ContainSubstring(`may not remove a condition of type "Approved"`)))
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		p.does(ctx, "Approved,Issued", "get", "csr", "anna")
		p.does(ctx, "approved", "certificate", "approve", "bob")
		Expect(red.Client.DeleteAllOf(ctx, request, client.MatchingFields{"spec.signerName": "example.com/signer"})).To(Succeed())
		Expect(red.Client.List(ctx, &found)).To(Succeed())
		Expect(keysOf(found.Items)).To(Equal([]string{"/bob"}))
	})

	It("lets a user approve and sign for the signers that its role names", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "approver"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval"}, Verbs: []string{"*"}},
			{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{"own.example.com/*"}, Verbs: []string{"approve"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "approver"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "approver"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "carol"}},
		}
		kit.Create(ctx, red.Client, role, binding)
		carol := red.As("carol")
		own, others := requestOf("own", "own.example.com/a"), requestOf("others", "others.example.com/a")
		Eventually(func() error { return carol.Client.Create(ctx, own.DeepCopy()) }).Should(Succeed())
		kit.Create(ctx, carol.Client, others)
		Expect(kit.Get(ctx, red.Client, own)).To(Succeed())
		for request, permitted := range map[*certificatesv1.CertificateSigningRequest]bool{own: true, others: false} {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
			err := carol.Client.SubResource("approval").Update(ctx, request)
			if permitted {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(err).To(MatchError(ContainSubstring("user not permitted to approve requests")))
			}
		}
	})
})

var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// permit lets a tenant use an API group of its CRDs, as vc-manager does.
func permit(ctx context.Context, t *kit.Converted, group string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: "converted-crds." + names.Domain + ":" + t.Key}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{names.ConvertedGroup(t.Key) + group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: t.Key, Name: names.ConvertedAccount}},
	}
	kit.Create(ctx, super.Client, role, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, role)).To(Succeed())
		Expect(super.Client.Delete(ctx, binding)).To(Succeed())
	})
}
