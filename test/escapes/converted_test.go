package escapes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A converted tenant", Ordered, ContinueOnFailure, func() {
	const treasure = "the-treasure-of-alice"
	var (
		converter      *kit.Converter
		alice, mallory *kit.Converted
		ofAlice        string // her namespace in the super cluster
	)
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	configMap := func(ns, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	// stays asserts that an object of mallory has the platform's label.
	stays := func(ctx context.Context, name string) {
		GinkgoHelper()
		object := configMap(names.SuperNamespace(mallory.Key, "shop"), name)
		Expect(kit.Get(ctx, super.Client, object)).To(Succeed())
		Expect(object.Labels).To(HaveKeyWithValue(names.Converted, mallory.Key))
	}

	BeforeAll(func(ctx SpecContext) {
		converter = kit.StartConverter(ctx, super)
		alice, mallory = converter.Tenant(ctx, "team-0a1b2c-alice"), converter.Tenant(ctx, "team-9d8e7f-mallory")
		ofAlice = names.SuperNamespace(alice.Key, "shop")
		hidden := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hidden"}, StringData: map[string]string{"a": treasure}}
		hidden.Labels = map[string]string{"treasure": treasure}
		kit.Create(ctx, alice.Client, namespace("shop"), hidden)
		kit.Create(ctx, mallory.Client, namespace("shop"), configMap("shop", "mine"))
	})

	attack("another's objects, by a path that leads out of the tenant's namespace", "idea: the gateway and the apiserver read a path differently", func(ctx SpecContext) {
		for _, path := range []string{
			"/api/v1/namespaces/" + ofAlice + "/secrets", "/api/v1/namespaces/" + ofAlice + "/secrets/hidden", "/api/v1/namespaces/" + ofAlice,
			"/api/v1/namespaces/shop/../" + ofAlice + "/secrets", "/api/v1/namespaces/shop%2F..%2F" + ofAlice + "/secrets",
			"/api/v1/namespaces/shop/secrets/..%2f..%2f" + ofAlice + "%2fsecrets%2fhidden", "/api/v1/namespaces//secrets", "//api/v1/secrets",
			"/api/v1/watch/secrets", "/api/v1/watch/namespaces/" + ofAlice + "/secrets", "/api/v1/proxy/namespaces/" + ofAlice + "/secrets",
			"/api/v1//secrets", "/api/v1/secrets/", "/apis//v1/secrets", "/api/v1/..%2fv1/secrets", "/apis/apps/v1/../../../api/v1/secrets",
			"/api/v1/secrets?fieldSelector=metadata.namespace%3D" + ofAlice, "/api/v1/secrets?fieldSelector=metadata.namespace%3D%2A",
			"/api/v1/namespaces/%2A/secrets", "/api/v1/namespaces/shop/secrets/hidden", "/api/v1/secrets?watch=1&timeoutSeconds=1",
			"/api/v1/secrets?limit=1&continue=" + url.QueryEscape("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvIn0"),
		} {
			reply := mallory.Ask(ctx, http.MethodGet, path, "")
			Expect(reply.Body).NotTo(ContainSubstring(treasure), path)
			if !strings.Contains(path, ofAlice) {
				Expect(reply.Body).NotTo(ContainSubstring(alice.Key), path)
			}
		}
	})

	attack("another's objects, by a label selector over the platform's labels", "design: reserved selectors", func(ctx SpecContext) {
		for _, selector := range []string{
			"!" + names.Converted, names.Converted, names.Converted + "=" + alice.Key, names.Converted + " notin (" + mallory.Key + ")",
			"labels." + names.Domain + "/a", "treasure=" + treasure, "treasure",
		} {
			reply := mallory.Ask(ctx, http.MethodGet, "/api/v1/secrets?labelSelector="+url.QueryEscape(selector), "")
			Expect(reply.Body).NotTo(ContainSubstring(treasure), selector)
			if strings.Contains(selector, names.Domain) {
				Expect(reply.Code).To(Equal(http.StatusBadRequest), selector)
			}
		}
	})

	attack("another's objects, as a user of the super cluster in headers", "idea: headers of impersonation", func(ctx SpecContext) {
		for _, header := range []string{"Impersonate-User", "Impersonate-Group", "X-Remote-User", "X-Remote-Group", "impersonate_user"} {
			reply := mallory.Ask(ctx, http.MethodGet, "/api/v1/namespaces/shop/secrets/hidden", "", header, "system:masters")
			Expect(reply.Body).NotTo(ContainSubstring(treasure), header)
			if strings.HasPrefix(header, "Impersonate") { // of a user of the tenant
				Expect(reply.Code).To(BeElementOf(http.StatusForbidden, http.StatusBadRequest), header)
			} else {
				Expect(reply.Code).To(Equal(http.StatusNotFound), header)
			}
		}
		fenced := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + mallory.Key + ":" + names.ConvertedAccount,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ofAlice, Verb: "get", Resource: "secrets"},
		}}
		Expect(super.Client.Create(ctx, fenced)).To(Succeed())
		Expect(fenced.Status.Allowed).To(BeFalse(), "RBAC of the super cluster confines the tenant's account")
	})

	attack("a namespace of another, whose name in the super cluster is the same", "design: (team, a-b) and (team-a, b)", func(ctx SpecContext) {
		long := converter.Tenant(ctx, mallory.Key+"-b")
		kit.Create(ctx, long.Client, namespace("vault"), configMap("vault", "hidden"))
		for _, path := range []string{"/api/v1/namespaces/b-vault", "/api/v1/namespaces/b-vault/configmaps/hidden", "/api/v1/namespaces/b-vault/configmaps"} {
			Expect(mallory.Ask(ctx, http.MethodGet, path, "").Code).To(Equal(http.StatusForbidden), path)
		}
		reply := mallory.Ask(ctx, http.MethodPatch, "/api/v1/namespaces/b-vault?fieldManager=m&force=true",
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b-vault"}}`, "Content-Type", string(types.ApplyYAMLPatchType))
		Expect(reply.Code).To(Equal(http.StatusForbidden))
		Expect(mallory.Client.Create(ctx, namespace("b-vault"))).To(MatchError(ContainSubstring("already exists")))
		inSuper := namespace(names.SuperNamespace(long.Key, "vault"))
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Labels).To(HaveKeyWithValue(names.Converted, long.Key))
	})

	attack("the platform's labels of an object, by each way to write", "design: JSON patch replacing labels", func(ctx SpecContext) {
		const path = "/api/v1/namespaces/shop/configmaps/mine"
		label := strings.ReplaceAll(names.Converted, "/", "~1")
		for _, write := range []struct{ method, mediaType, body string }{
			{http.MethodPut, "application/json", `{"metadata":{"name":"mine","labels":{"` + names.Converted + `":"` + alice.Key + `"}}}`},
			{http.MethodPut, "application/json", `{"metadata":{"name":"mine"}}`},
			{http.MethodPatch, string(types.MergePatchType), `{"metadata":{"labels":{"` + names.Converted + `":null}}}`},
			{http.MethodPatch, string(types.MergePatchType), `{"metadata":{"labels":null}}`},
			{http.MethodPatch, string(types.StrategicMergePatchType), `{"metadata":{"labels":{"$patch":"replace"}}}`},
			{http.MethodPatch, string(types.StrategicMergePatchType), `{"metadata":{"labels":{"$patch":"delete"}}}`},
			{http.MethodPatch, string(types.StrategicMergePatchType), `{"metadata":{"labels":{"$retainKeys":["a"]}}}`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"remove","path":"/metadata/labels"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"replace","path":"/metadata/labels/` + label + `","value":"` + alice.Key + `"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"copy","from":"/metadata/labels/` + label + `","path":"/data"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"copy","from":"/metadata","path":"/data"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"copy","from":"/metadata/","path":"/data"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"copy","from":"/metadata/labels/","path":"/data"}]`},
			{http.MethodPatch, string(types.JSONPatchType), `[{"op":"copy","from":"x/metadata/namespace","path":"/metadata/annotations/a"}]`},
			{http.MethodPatch, string(types.ApplyYAMLPatchType), "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, labels: {" + names.Converted + ": a}}}"},
		} {
			reply := mallory.Ask(ctx, write.method, path+"?fieldManager=m", write.body, "Content-Type", write.mediaType)
			Expect(reply.Body).NotTo(ContainSubstring(mallory.Key), write.body)
			stays(ctx, "mine")
		}
	})

	attack("namespaces and objects of all, by a deletion without a name", "idea: a collection is not the tenant's", func(ctx SpecContext) {
		for _, path := range []string{"/api/v1/namespaces", "/api/v1/secrets", "/api/v1/namespaces/", "/api/v1/namespaces/" + ofAlice + "/secrets"} {
			Expect(mallory.Ask(ctx, http.MethodDelete, path, "").Code).To(BeElementOf(
				http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotFound), path)
		}
		Expect(kit.Get(ctx, alice.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hidden"}})).To(Succeed())
	})

	attack("another namespace, by a key that occurs twice or in another spelling", "idea: two readers of one document", func(ctx SpecContext) {
		for _, metadata := range []string{
			`"namespace":"shop","namespace":"` + ofAlice + `"`, `"namespace":"shop","n\u0061mespace":"` + ofAlice + `"`,
			`"Namespace":"` + ofAlice + `"`, `"namespace":["` + ofAlice + `"]`, `"namespace":"` + ofAlice + `"`,
		} {
			_ = mallory.Ask(ctx, http.MethodPost, "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"twice",`+metadata+`}}`)
			kit.ShouldStayAbsent(ctx, super.Client, configMap(ofAlice, "twice"))
		}
	}, NodeTimeout(kit.Soon))

	attack("a token of the super cluster, in a Secret, or by TokenRequest", "design: token Secret", func(ctx SpecContext) {
		for _, write := range []struct{ path, body string }{
			{"secrets", `{"metadata":{"name":"t","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`},
			{"secrets", `{"metadata":{"generateName":"t"},"type":"kubernetes.io/service-account-token"}`},
		} {
			reply := mallory.Ask(ctx, http.MethodPost, "/api/v1/namespaces/shop/"+write.path, write.body, "Content-Type", "application/json")
			Expect(reply.Code).To(BeElementOf(http.StatusForbidden, http.StatusUnprocessableEntity), write.body)
			Expect(reply.Body).To(ContainSubstring("a token without an end"))
		}
		for _, audiences := range []string{``, `"audiences":null`, `"audiences":["https://kubernetes.default.svc.cluster.local"]`, `"audiences":["api","` + alice.Key + `"]`} {
			reply := mallory.Ask(ctx, http.MethodPost, "/api/v1/namespaces/shop/serviceaccounts/default/token", `{"spec":{`+audiences+`}}`, "Content-Type", "application/json")
			Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
			made := &authenticationv1.TokenRequest{}
			Expect(json.Unmarshal([]byte(reply.Body), made)).To(Succeed())
			for _, of := range []string{"", alice.Key, "converted.tenancy.x-k8s.io/" + alice.Key} {
				review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token}}
				if of != "" {
					review.Spec.Audiences = []string{of}
				}
				Expect(super.Client.Create(ctx, review)).To(Succeed())
				Expect(review.Status.Authenticated).To(BeFalse(), "%s for %q", audiences, of)
			}
		}
	})

	attack("a privileged pod, by removing the Pod Security labels of its namespace", "design: privileged label", func(ctx SpecContext) {
		for _, patch := range []struct{ mediaType, body string }{
			{string(types.MergePatchType), `{"metadata":{"labels":null}}`},
			{string(types.MergePatchType), `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`},
			{string(types.StrategicMergePatchType), `{"metadata":{"labels":{"$patch":"replace"}}}`},
			{string(types.JSONPatchType), `[{"op":"remove","path":"/metadata/labels"}]`},
			{string(types.JSONPatchType), `[{"op":"replace","path":"/metadata/annotations","value":{}}]`},
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, "/api/v1/namespaces/shop", patch.body, "Content-Type", patch.mediaType)
			Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
			privileged := kit.Pod("shop", "privileged", func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			})
			Expect(mallory.Client.Create(ctx, privileged)).To(MatchError(ContainSubstring("violates PodSecurity")), patch.body)
		}
	})

	attack("objects of the platform as owners, which block its deletions", "design: owner reference across scopes", func(ctx SpecContext) {
		for _, owner := range []string{
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"admin","uid":"1","blockOwnerDeletion":true}`,
			`{"apiVersion":"apps/v1","kind":"Widget","name":"a","uid":"1"}`,
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, "/api/v1/namespaces/shop/configmaps/mine",
				`{"metadata":{"ownerReferences":[`+owner+`]}}`, "Content-Type", string(types.MergePatchType))
			Expect(reply.Code).To(Equal(http.StatusUnprocessableEntity))
		}
	})
})
