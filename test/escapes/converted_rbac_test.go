package escapes

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

var _ = Describe("The RBAC of a converted tenant", Ordered, ContinueOnFailure, func() {
	const treasure = "the-treasure-of-alice"
	var alice, mallory *kit.Converted
	forbidden := MatchError(apierrors.IsForbidden, "Forbidden")
	anyone := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllUnauthenticated}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllAuthenticated},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Anonymous}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "anna"},
	}
	adminFor := func(name string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}
	}
	secretsOf := func(c client.Client) error { return c.List(GinkgoT().Context(), &corev1.SecretList{}) }

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		alice, mallory = converter.Tenant(ctx, "team-2a1b2c-alice"), converter.Tenant(ctx, "team-2d8e7f-mallory")
		kit.Create(ctx, alice.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hidden", Labels: map[string]string{"a": treasure}}},
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hidden", Labels: map[string]string{"a": treasure}}})
		kit.Create(ctx, mallory.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	})

	attack("objects of others, by a binding for all users", "design: system:unauthenticated binding", func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client, adminFor("open", anyone...))
		inside := mallory.As("anna")
		Eventually(func() error { return secretsOf(inside.Client) }).Should(Succeed())
		Expect(secretsOf(alice.As("anna").Client)).To(forbidden)
		Expect(secretsOf(alice.As(user.Anonymous, user.AllUnauthenticated).Client)).To(forbidden)
		anonymous, err := local.NewClient(rest.AnonymousClientConfig(super.Config))
		Expect(err).NotTo(HaveOccurred())
		Expect(secretsOf(anonymous)).To(Or(forbidden, MatchError(apierrors.IsUnauthorized, "Unauthorized")))
		Expect(super.Client.Get(ctx, client.ObjectKey{Name: "open"}, &rbacv1.ClusterRoleBinding{})).To(MatchError(apierrors.IsNotFound, "NotFound"))
	})

	attack("the roles of others, by the group in which they are stored", "idea: the shelf has a path of its own", func(ctx SpecContext) {
		for _, path := range []string{
			"/apis/shelved.tenancy.x-k8s.io/v1/clusterroles", "/apis/shelved.tenancy.x-k8s.io/v1/namespaces/" + alice.Key + "/clusterroles/hidden",
			"/apis/shelved.tenancy.x-k8s.io/v1/namespaces/shop/roles", "/apis/shelved.tenancy.x-k8s.io/v1", "/apis/shelved.tenancy.x-k8s.io",
			rbacPath + "/namespaces/" + alice.Key + "/clusterroles", rbacPath + "/namespaces/" + alice.Key + "/clusterroles/hidden",
			rbacPath + "/namespaces/" + alice.Key + "/roles", rbacPath + "/namespaces/" + names.SuperNamespace(alice.Key, "shop") + "/roles",
			rbacPath + "/clusterroles/hidden", rbacPath + "/clusterroles?fieldSelector=metadata.namespace%3D" + alice.Key,
			rbacPath + "/clusterroles/..%2f..%2f" + alice.Key + "%2fclusterroles%2fhidden", rbacPath + "/clusterroles?labelSelector=a%3D" + treasure,
			rbacPath + "/watch/clusterroles", "/apis/rbac.authorization.k8s.io/v1beta1/clusterroles", rbacPath + "/roles", rbacPath + "/clusterroles",
			rbacPath + "/clusterroles?watch=1&timeoutSeconds=1", rbacPath + "/roles?watch=1&timeoutSeconds=1",
		} {
			reply := mallory.Ask(ctx, http.MethodGet, path, "")
			Expect(reply.Body).NotTo(ContainSubstring(treasure), path)
		}
		for _, document := range []string{
			`{"apiVersion":"shelved.tenancy.x-k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`,
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"../` + alice.Key + `/a"}}`,
		} {
			Expect(mallory.Ask(ctx, http.MethodPost, rbacPath+"/clusterroles", document).Code).To(BeElementOf(http.StatusBadRequest, http.StatusUnprocessableEntity), document)
		}
		// A namespace of the tenant's document is not the one in which it is stored.
		placed := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"placed","namespace":"` + alice.Key + `"}}`
		Expect(mallory.Ask(ctx, http.MethodPost, rbacPath+"/clusterroles", placed).Code).To(Equal(http.StatusCreated))
		Expect(alice.Client.Get(ctx, client.ObjectKey{Name: "placed"}, &rbacv1.ClusterRole{})).To(MatchError(apierrors.IsNotFound, "NotFound"))
	})

	attack("the rights of all tenants, by changing a role that they share", "idea: copied on write", func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}})
		for _, write := range []struct{ path, mediaType, body string }{
			{"/clusterroles/system:basic-user", string(types.MergePatchType), `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`},
			{"/clusterrolebindings/cluster-admin", string(types.JSONPatchType), `[{"op":"add","path":"/subjects/-","value":{"kind":"Group","name":"system:authenticated"}}]`},
			{"/clusterroles/view?fieldManager=m&force=true", string(types.ApplyYAMLPatchType),
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}"},
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, rbacPath+write.path, write.body, "Content-Type", write.mediaType)
			Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
		}
		Eventually(func() error { return secretsOf(mallory.As("ben").Client) }).Should(Succeed())
		Expect(secretsOf(alice.As("ben").Client)).To(forbidden)
		native := &rbacv1.ClusterRole{}
		Expect(super.Client.Get(ctx, client.ObjectKey{Name: "system:basic-user"}, native)).To(Succeed())
		Expect(native.Rules).NotTo(ContainElement(HaveField("Verbs", ContainElement("*"))))
		Expect(mallory.Ask(ctx, http.MethodDelete, rbacPath+"/clusterroles", "").Code).To(Equal(http.StatusOK), "its own")
		Expect(mallory.Ask(ctx, http.MethodDelete, rbacPath+"/clusterrolebindings", "").Code).To(Equal(http.StatusOK))
		Expect(super.Client.Get(ctx, client.ObjectKey{Name: "cluster-admin"}, native)).To(Succeed())
	})

	attack("more rights in the tenant, by a user who may write roles and bindings", "design: escalation is checked as upstream", func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"},
				Verbs: []string{"create", "get", "list", "update", "patch", "delete", "deletecollection"},
			}}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mia"}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "manager"},
			},
			adminFor("others", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "boss"}))
		mia := mallory.As("mia")
		Eventually(func() error { return mia.Client.List(ctx, &rbacv1.ClusterRoleList{}) }).Should(Succeed())
		const all = `[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`
		me := `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mia"}`
		type write struct{ method, path, mediaType, body string }
		writes := []write{
			{http.MethodPatch, "/clusterroles/manager", string(types.MergePatchType), `{"rules":` + all + `}`},
			{http.MethodPatch, "/clusterroles/manager", string(types.StrategicMergePatchType), `{"rules":` + all + `}`},
			{http.MethodPatch, "/clusterroles/manager", string(types.JSONPatchType), `[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}}]`},
			{http.MethodPatch, "/clusterroles/manager", string(types.JSONPatchType), `[{"op":"add","path":"/aggregationRule","value":{"clusterRoleSelectors":[{}]}}]`},
			{http.MethodPatch, "/clusterroles/manager?fieldManager=m&force=true", string(types.ApplyYAMLPatchType),
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"manager"},"rules":` + all + `}`},
			{http.MethodPatch, "/clusterroles/new?fieldManager=m", string(types.ApplyYAMLPatchType),
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"new"},"rules":` + all + `}`},
			{http.MethodPatch, "/clusterroles/system:discovery", string(types.MergePatchType), `{"rules":` + all + `}`},
			{http.MethodPatch, "/clusterrolebindings/others", string(types.MergePatchType), `{"subjects":[` + me + `]}`},
			{http.MethodPatch, "/clusterrolebindings/others", string(types.JSONPatchType), `[{"op":"add","path":"/subjects/-","value":` + me + `}]`},
			{http.MethodPatch, "/clusterrolebindings/others?fieldManager=m&force=true", string(types.ApplyYAMLPatchType),
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"others"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[` + me + `]}`},
			{http.MethodPatch, "/clusterrolebindings/cluster-admin", string(types.MergePatchType), `{"subjects":[` + me + `]}`},
			{http.MethodPost, "/namespaces/shop/roles", "application/json", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":` + all + `}`},
			{http.MethodPost, "/namespaces/shop/rolebindings", "application/json",
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"a"},"roleRef":{"kind":"ClusterRole","name":"admin"},"subjects":[` + me + `]}`},
			{http.MethodPost, "/clusterrolebindings", "application/yaml",
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {generateName: a}, roleRef: {kind: ClusterRole, name: edit}, subjects: [" + me + "]}"},
		}
		for _, w := range writes {
			reply := mia.Ask(ctx, w.method, rbacPath+w.path, w.body, "Content-Type", w.mediaType)
			Expect(reply.Code).To(Equal(http.StatusForbidden), w.path+" "+w.body+"\n"+reply.Body)
		}
		for header, value := range map[string]string{"Impersonate-User": "boss", "Impersonate-Group": "system:masters"} {
			reply := mia.Ask(ctx, http.MethodGet, "/api/v1/secrets", "", "Impersonate-User", "mia", header, value)
			Expect(reply.Code).To(Equal(http.StatusForbidden), header)
		}
		Expect(secretsOf(mia.Client)).To(forbidden)
	})

	attack("the role of another name, by a name that looks like its stored form", "idea: names with ':' are encoded", func(ctx SpecContext) {
		stored, err := naming.Shelved("app:reader")
		Expect(err).NotTo(HaveOccurred())
		all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		kit.Create(ctx, mallory.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "app:reader"}})
		kit.Create(ctx, mallory.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: stored}, Rules: all})
		reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "app:reader"}}
		Expect(kit.Get(ctx, mallory.Client, reader)).To(Succeed())
		Expect(reader.Rules).To(BeEmpty())
		both := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: stored}}
		Expect(kit.Get(ctx, mallory.Client, both)).To(Succeed())
		Expect(both.Rules).To(Equal(all))
	})

	attack("the memory and the time of the gateway, by patches and roles", "idea: what is copied has a limit, and a binding costs its subject alone", func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bomb", Annotations: map[string]string{"a": strings.Repeat("x", 1000)}}})
		operations := make([]string, 30)
		for i := range operations {
			operations[i] = fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/%d"}`, i)
		}
		reply := mallory.Ask(ctx, http.MethodPatch, rbacPath+"/clusterroles/bomb", "["+strings.Join(operations, ",")+"]", "Content-Type", string(types.JSONPatchType))
		Expect(reply.Code).To(Equal(http.StatusUnprocessableEntity))
		Expect(reply.Body).To(ContainSubstring("size"))
		long := strings.Repeat(":", 157)
		Expect(mallory.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: long}})).To(MatchError(ContainSubstring("must be no more than 156 bytes")))
	})
})
