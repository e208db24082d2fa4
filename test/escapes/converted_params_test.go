package escapes

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The bindings of policies of a converted tenant", Ordered, func() {
	attack("objects that their author may not read, by binding them as parameters", "upstream: the author of a paramRef reads it", func(ctx SpecContext) {
		tenant := kit.StartConverter(ctx, super).Tenant(ctx, "params-1a2b3c-mallory")
		kit.Create(ctx, tenant.Client, kit.Namespace("shop"))
		binder := func(verbs []string, group, resource string, names ...string) *rbacv1.ClusterRole {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: resource}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names},
			}}
		}
		grant := func(role *rbacv1.ClusterRole) {
			kit.Create(ctx, tenant.Client, role, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "olga"}},
			})
		}
		grant(binder([]string{"*"}, admissionregistrationv1.GroupName, "validatingadmissionpolicybindings"))
		grant(binder([]string{"get"}, "", "secrets", "hers"))
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "reads"}}
		policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
		policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			{RuleWithOperations: kit.ForRequests("", "configmaps", admissionregistrationv1.Create)[0]},
		}}
		policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "false", MessageExpression: "string(params.data.a)"}}
		kit.Create(ctx, tenant.Client, policy)

		binding := func(policy string, ref *admissionregistrationv1.ParamRef) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
			if ref != nil {
				ref.ParameterNotFoundAction = new(admissionregistrationv1.DenyAction)
			}
			return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "by-olga"},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: policy, ParamRef: ref, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			}
		}
		olga := tenant.As("olga")
		hers := func() *admissionregistrationv1.ParamRef {
			return &admissionregistrationv1.ParamRef{Name: "hers", Namespace: "shop"}
		}
		Eventually(func() error { return olga.Client.Create(ctx, binding("reads", hers()), client.DryRunAll) }).Should(Succeed())
		forbidden := MatchError(apierrors.IsForbidden, "Forbidden")
		for _, ref := range []*admissionregistrationv1.ParamRef{
			{Name: "hidden", Namespace: "shop"}, {Name: "hidden"}, {Selector: &metav1.LabelSelector{}, Namespace: "shop"}, {Selector: &metav1.LabelSelector{}},
		} {
			Expect(olga.Client.Create(ctx, binding("reads", ref))).To(forbidden, "%v", ref)
			Expect(olga.Client.Create(ctx, binding("of-the-future", ref))).To(forbidden, "%v", ref)
		}
		Expect(olga.Client.Create(ctx, binding("of-the-future", hers()))).To(forbidden)
		kit.Create(ctx, olga.Client, binding("reads", hers()))
		path := "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/by-olga"
		for _, write := range []struct{ mediaType, body string }{
			{string(types.MergePatchType), `{"spec":{"paramRef":{"name":"hidden"}}}`},
			{string(types.MergePatchType), `{"spec":{"paramRef":{"name":null,"selector":{}}}}`},
			{string(types.MergePatchType), `{"spec":{"policyName":"of-the-future"}}`},
			{string(types.JSONPatchType), `[{"op":"replace","path":"/spec/paramRef/name","value":"hidden"}]`},
			{string(types.ApplyYAMLPatchType), `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding",` +
				`"metadata":{"name":"by-olga"},"spec":{"paramRef":{"name":"hidden","parameterNotFoundAction":"Deny"}}}`},
		} {
			reply := olga.Ask(ctx, http.MethodPatch, path+"?fieldManager=m&force=true", write.body, "Content-Type", write.mediaType)
			Expect(reply.Code).To(Equal(http.StatusForbidden), write.body+" "+reply.Body)
		}
		labelled := `{"metadata":{"labels":{"a":"b"}}}`
		Expect(olga.Ask(ctx, http.MethodPatch, path, labelled, "Content-Type", string(types.MergePatchType)).Code).To(Equal(http.StatusOK))
		Expect(tenant.Client.Create(ctx, binding("reads", &admissionregistrationv1.ParamRef{Name: "hidden", Namespace: "shop"}), client.DryRunAll)).
			To(MatchError(apierrors.IsAlreadyExists, "AlreadyExists"), "the admin may")
	})
})
