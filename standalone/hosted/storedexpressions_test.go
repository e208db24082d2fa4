package hosted_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// longExpression counts as more than one of the usual length.
const longExpression = `'a' != '' && 'b' != '' && 'c' != '' && 'd' != '' && 'e' != '' && 'f' != '' && 'g' != '' && 'h' != ''`

const policiesPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

// policyOf is a policy of some expressions of the usual length, shortPolicy one of the
// shortest.
func policyOf(name string, expressions int) string {
	return policyWith(name, longExpression, expressions)
}
func shortPolicy(name string, expressions int) string { return policyWith(name, "true", expressions) }

func policyWith(name, expression string, expressions int) string {
	validation := `{"expression":"` + expression + `"}`
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},`+
		`"validations":[%s]}}`, name, strings.TrimSuffix(strings.Repeat(validation+",", expressions), ","))
}

// sender sends JSON to a control plane.
type sender struct {
	ctx    context.Context //nolint:containedctx // of a test
	client rest.Interface
}

func senderOf(t *testing.T, plane *hosted.ControlPlane) sender {
	t.Helper()
	return sender{t.Context(), clientOf(t, plane.RESTConfig()).CoreV1().RESTClient()}
}

func (s sender) create(path, body string) error {
	return s.client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(s.ctx).Error()
}

func (s sender) patch(path string, kind types.PatchType, body string) error {
	return s.client.Patch(kind).AbsPath(path).Param("fieldManager", "test").Body([]byte(body)).Do(s.ctx).Error()
}

func (s sender) remove(path string) error { return s.client.Delete().AbsPath(path).Do(s.ctx).Error() }

// TestStoredExpressionsAreCounted: of each kind that has any, when an object is
// created, changed and deleted, and the same after a restart.
func TestStoredExpressionsAreCounted(t *testing.T) {
	t.Parallel()
	const (
		admission = "/apis/admissionregistration.k8s.io/v1"
		devices   = "/apis/resource.k8s.io/v1"
		matches   = `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}`
		path      = `'/a', value: ` + longExpression
		one       = `{"expression":"` + longExpression + `"}`
		condition = `{"name":"a","expression":"` + longExpression + `"}`
		mutation  = `{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: ` + path + `}]"}}`
		selector  = `{"cel":{"expression":"` + longExpression + `"}}`
		request   = `{"name":"a","exactly":{"deviceClassName":"a","selectors":[` + selector + `]}}`
	)
	webhook := func(conditions string) string {
		return `[{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://a.example.com"},` +
			`"matchConditions":[` + conditions + `]}]`
	}
	definition := func(rules string) string {
		return `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[` + rules + `]}}}]`
	}
	rule := func(name string) string { return `{"rule":"'` + strings.Repeat(name, 800) + `' != ''"}` }
	two := condition + "," + strings.Replace(condition, `"a"`, `"b"`, 1)
	kinds := []struct{ path, name, object, change string }{ // change is empty if the object cannot be changed
		{admission + "/validatingadmissionpolicies", "a", `"spec":{` + matches + `,"validations":[` + one + `]}`, `{"spec":{"validations":[` + one + `,` + one + `]}}`},
		{
			admission + "/mutatingadmissionpolicies", "a", `"spec":{` + matches + `,"reinvocationPolicy":"Never","mutations":[` + mutation + `]}`,
			`{"spec":{"mutations":[` + mutation + `,` + mutation + `]}}`,
		},
		{admission + "/validatingwebhookconfigurations", "a", `"webhooks":` + webhook(condition), `{"webhooks":` + webhook(two) + `}`},
		{admission + "/mutatingwebhookconfigurations", "a", `"webhooks":` + webhook(condition), `{"webhooks":` + webhook(two) + `}`},
		{
			"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "as.example.com",
			`"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":` + definition(rule("a")) + `}`,
			`{"spec":{"versions":` + definition(rule("a")+","+rule("b")) + `}}`,
		},
		{devices + "/deviceclasses", "a", `"spec":{"selectors":[` + selector + `]}`, `{"spec":{"selectors":[` + selector + `,` + selector + `]}}`},
		{devices + "/namespaces/default/resourceclaims", "a", `"spec":{"devices":{"requests":[` + request + `]}}`, ""},
		{devices + "/namespaces/default/resourceclaimtemplates", "a", `"spec":{"spec":{"devices":{"requests":[` + request + `]}}}`, ""},
	}
	g := NewWithT(t)
	opts := options(t.TempDir())
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	plane := runReady(t, host, hosted.Spec{Name: "red", Shared: true})
	send, last := senderOf(t, plane), int64(0)
	shouldBe := func(matcher string, compared int64, what string) {
		t.Helper()
		used := plane.Consumption().Expressions.Used
		g.Expect(used).To(BeNumerically(matcher, compared), what)
		last = used
	}
	shouldBe("==", 0, "without expressions")
	for _, kind := range kinds {
		g.Expect(send.create(kind.path, `{"metadata":{"name":"`+kind.name+`"},`+kind.object+`}`)).To(Succeed(), kind.path)
		shouldBe(">", last, "after the creation of one of "+kind.path)
		if kind.change == "" {
			continue
		}
		g.Expect(send.patch(kind.path+"/"+kind.name, types.MergePatchType, kind.change)).To(Succeed(), kind.path)
		shouldBe(">", last, "after a change of one of "+kind.path)
		g.Expect(send.patch(kind.path+"/"+kind.name, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed(), kind.path)
		shouldBe("==", last, "after a change of the metadata of one of "+kind.path)
	}
	all := last
	stop(t, plane)
	stopHost(t, host)

	host, err = hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { stopHost(t, host) })
	plane = runReady(t, host, hosted.Spec{Name: "red"})
	send = senderOf(t, plane)
	g.Expect(send.create(policiesPath, policyOf("b", 1))).To(Succeed())
	g.Expect(send.remove(policiesPath + "/b")).To(Succeed())
	shouldBe("==", all, "after a restart")
	for _, kind := range kinds {
		before := last
		g.Expect(send.remove(kind.path+"/"+kind.name)).To(Succeed(), kind.path)
		g.Eventually(func() int64 { return plane.Consumption().Expressions.Used }).WithTimeout(soon).
			Should(BeNumerically("<", before), "after the deletion of one of %s", kind.path)
		last = plane.Consumption().Expressions.Used
	}
	shouldBe("==", 0, "after all deletions")
}

// TestStoredExpressionsAreLimited: a tenant at its limit gets an error, can make
// room by itself, and its controllers and the platform work.
func TestStoredExpressionsAreLimited(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "expressive", Expressions: 20, Shared: true})
	send := senderOf(t, plane)
	g.Expect(send.create(policiesPath, policyOf("a", 8))).To(Succeed())
	err := send.create(policiesPath, policyOf("b", 8))
	g.Expect(err).To(Satisfy(apierrors.IsForbidden))
	g.Expect(err).To(MatchError(And(ContainSubstring(`"b"`), ContainSubstring("limited to as much work as 20 of the usual length"))))
	g.Expect(plane.Consumption().Expressions.Rejected).To(BeEquivalentTo(1))
	apply := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy",` + policyOf("b", 8)[1:]
	g.Expect(send.patch(policiesPath+"/b", types.ApplyPatchType, apply)).To(Satisfy(apierrors.IsForbidden))
	more := `{"spec":` + policyOf("a", 12)[len(`{"metadata":{"name":"a"},"spec":`):]
	g.Expect(send.patch(policiesPath+"/a", types.MergePatchType, more)).To(Satisfy(apierrors.IsForbidden))
	g.Expect(send.patch(policiesPath+"/a", types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())

	g.Expect(send.remove(policiesPath + "/a")).To(Succeed())
	g.Expect(send.create(policiesPath, policyOf("b", 8))).To(Succeed(), "the room is there at once")
	plane.SetLimits(hosted.Limits{Expressions: 100})
	g.Expect(send.create(policiesPath, policyOf("c", 8))).To(Succeed())
}
