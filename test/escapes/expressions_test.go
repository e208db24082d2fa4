package escapes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Expressions that take long to compile", func() {
	inBothChains(attackWithExpressions)
	Describe("of a converted tenant", Ordered, attackSuperWithExpressions)
})

const (
	definitions  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	policyPath   = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	forSettings  = `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}`
	tooMuchWork  = "times as much work as it may be"
	policyToFill = `{"metadata":{"name":"costly"},"spec":{` + forSettings + `,%s}}`
)

// copied is an expression that upstream copies four times at each call.
var copied = "optional.of(1)" + strings.Repeat(".optMap(a,a)", 24) + ".hasValue()"

// attackWithExpressions declares the attacks on control planes of an isolation. Each
// is one request, after which another tenant of the process has to be served.
func attackWithExpressions(isolation tenancyv1alpha1.Isolation, where string) {
	const ns = "expressions"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) { mallory = tenant(ctx, kit.WithIsolation(isolation)) })
	shouldServeOthers(isolation, ns)
	send := func(ctx context.Context, method, path, mediaType, body string) (code int, text string) {
		GinkgoHelper()
		return sendSoon(ctx, mallory, method, path, mediaType, strings.NewReader(body))
	}
	refuse := func(ctx context.Context, path, body string) {
		GinkgoHelper()
		code, text := send(ctx, http.MethodPost, path, "application/json", body)
		Expect(code).To(Equal(http.StatusForbidden), "%.300s", text)
		Expect(text).To(ContainSubstring(tooMuchWork))
		Expect(len(text)).To(BeNumerically("<", 1<<10))
	}
	// validations is a policy with the expressions.
	validations := func(expressions ...string) string {
		var all []string
		for _, each := range expressions {
			all = append(all, `{"expression":`+strconv.Quote(each)+`}`)
		}
		return fmt.Sprintf(policyToFill, `"validations":[`+strings.Join(all, ",")+`]`)
	}
	quoted := strconv.Quote(copied)

	for _, a := range []struct{ text, path, body string }{
		{"a validation of a policy", policyPath, validations(copied)},
		{"a message of a policy", policyPath, fmt.Sprintf(policyToFill, `"validations":[{"expression":"true","messageExpression":`+quoted+`}]`)},
		{"an audit annotation of a policy", policyPath, fmt.Sprintf(policyToFill, `"auditAnnotations":[{"key":"a","valueExpression":`+quoted+`}]`)},
		{"a variable of a policy", policyPath,
			fmt.Sprintf(policyToFill, `"variables":[{"name":"a","expression":`+quoted+`}],"validations":[{"expression":"true"}]`)},
		{"a condition of a policy", policyPath,
			fmt.Sprintf(policyToFill, `"matchConditions":[{"name":"a","expression":`+quoted+`}],"validations":[{"expression":"true"}]`)},
		{"a mutation of a policy", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
			fmt.Sprintf(policyToFill, `"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":`+quoted+`}}]`)},
		{"a condition of a webhook", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
			`{"metadata":{"name":"costly"},"webhooks":[{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],` +
				`"clientConfig":{"url":"https://a.example.com"},"matchConditions":[{"name":"a","expression":` + quoted + `}]}]}`},
		{"a rule of a definition", definitions, nestedDefinition(`{"type":"object","x-kubernetes-validations":[{"rule":`+quoted+`}]}`, "")},
		{"a selector of a class of devices", "/apis/resource.k8s.io/v1/deviceclasses",
			`{"metadata":{"name":"costly"},"spec":{"selectors":[{"cel":{"expression":` + quoted + `}}]}}`},
		{"a selector of a claim of devices", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"costly"},"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"a","selectors":[{"cel":{"expression":` + quoted + `}}]}}]}}}`},
	} {
		attack(a.text+" of 300 bytes, of which each call copies all before it four times"+where,
			"idea: ten calls take 18 s and 4 GB, and nothing ends them", func(ctx SpecContext) { refuse(ctx, a.path, a.body) })
	}

	attack("types that double with each loop of an expression"+where, "idea: a map of a variable to itself has its type twice", func(ctx SpecContext) {
		refuse(ctx, policyPath, validations("[1]"+strings.Repeat(".map(a,{a:a})", 24)+".size()>0"))
	})

	attack("types that double with each variable of a policy"+where, "idea: of which each is short", func(ctx SpecContext) {
		variables := []string{`{"name":"v0","expression":"1"}`}
		for i := range 30 {
			variables = append(variables, fmt.Sprintf(`{"name":"v%d","expression":"{variables.v%d: variables.v%[2]d}"}`, i+1, i))
		}
		refuse(ctx, policyPath, fmt.Sprintf(policyToFill, `"variables":[`+strings.Join(variables, ",")+`],"validations":[{"expression":"true"}]`))
	})

	attack("an expression of 30,000 maps, which the compiler compares with each other"+where, "idea: 8 kB take three seconds, and twice as much four times as long",
		func(ctx SpecContext) {
			refuse(ctx, policyPath, validations("["+strings.Repeat("{},", 30_000)+"{}].size()>0"))
		})

	attack("a regular expression that is repeated a thousand times"+where, "idea: 3,000 bytes are 128 MiB, which are kept", func(ctx SpecContext) {
		pattern := "(" + strings.Repeat("a", 3_000) + "){1000}"
		refuse(ctx, policyPath, validations("''.matches('"+pattern+"')"))
		refuse(ctx, definitions, nestedDefinition(`{"type":"object","properties":{"a":{"type":"string","pattern":"`+pattern+`"}}}`, ""))
	})

	attack("a policy of 10,000 expressions"+where, "review: four of them take 4 GiB, and again after each restart", func(ctx SpecContext) {
		all := make([]string, 10_000)
		for i := range all {
			all[i] = "true"
		}
		refuse(ctx, policyPath, validations(all...))
	})

	attack("a message of 200 MB about errors in the syntax of expressions"+where, "idea: each of a hundred errors shows the expression twice", func(ctx SpecContext) {
		all := make([]string, 1_000)
		for i := range all {
			all[i] = strings.Repeat(`'\p`, 300)
		}
		refuse(ctx, policyPath, validations(all...))
	})

	attack("a definition of a rule at each of 60 levels above 5,000 properties"+where, "idea: each has the types of all below it", func(ctx SpecContext) {
		const rule = `"x-kubernetes-validations":[{"rule":"true"}]`
		var properties []string
		for i := range 5_000 {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		}
		schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
		for range 60 {
			schema = `{"type":"object",` + rule + `,"properties":{"a":` + schema + `}}`
		}
		refuse(ctx, definitions, nestedDefinition(schema, ""))
	})

	attack("an expression that a patch writes into a policy"+where, "idea: its object is another than that of the request", func(ctx SpecContext) {
		code, text := send(ctx, http.MethodPost, policyPath, "application/json", validations("true"))
		Expect(code).To(Equal(http.StatusCreated), text)
		for mediaType, body := range map[string]string{
			"application/json-patch+json":            `[{"op":"replace","path":"/spec/validations/0/expression","value":` + quoted + `}]`,
			"application/merge-patch+json":           `{"spec":{"validations":[{"expression":` + quoted + `}]}}`,
			"application/strategic-merge-patch+json": `{"spec":{"validations":[{"expression":` + quoted + `}]}}`,
		} {
			code, text := send(ctx, http.MethodPatch, policyPath+"/costly", mediaType, body)
			Expect(code).To(Equal(http.StatusForbidden), "%s: %.300s", mediaType, text)
			Expect(text).To(ContainSubstring(tooMuchWork))
		}
	})

	attack("a rule that a policy writes into a definition"+where, "idea: policies change an object after it was decoded", func(ctx SpecContext) {
		addRule(ctx, mallory)
		body := nestedDefinition(`{"type":"object"}`, "")
		Eventually(func(ctx context.Context) (string, error) {
			code, text := send(ctx, http.MethodPost, definitions+"?dryRun=All", "application/json", body)
			if code == http.StatusCreated {
				return "", errors.New("the policy does not apply yet")
			}
			return text, nil
		}).WithContext(ctx).Should(ContainSubstring(tooMuchWork))
	})
}

// addRule makes a policy of a tenant add an expensive rule to new definitions.
func addRule(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	const to = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
	mutateBy(ctx, t, "rules", kit.ForRequests("apiextensions.k8s.io", "customresourcedefinitions", admissionregistrationv1.Create)[0],
		admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{
				Expression: fmt.Sprintf("[JSONPatch{op: 'add', path: %q, value: [{'rule': %q}]}]", to, copied),
			},
		})
}

// attackSuperWithExpressions declares the attacks on the gateway and on the super
// cluster's apiserver, which compile the expressions of converted tenants.
func attackSuperWithExpressions() {
	const (
		ns        = "shop"
		claims    = "/apis/resource.k8s.io/v1/namespaces/" + ns + "/resourceclaims"
		jsonType  = "application/json"
		jsonPatch = "application/json-patch+json"
		tooMuch   = "more work than it may be"
	)
	var alice, mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		converted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Converted" }
		alice, mallory = tenant(ctx, converted), tenant(ctx, converted)
		for _, t := range []*local.Tenant{alice, mallory} {
			Eventually(func() error { return t.Client.Create(ctx, kit.Namespace(ns)) }).WithContext(ctx).Should(Succeed())
		}
	})
	AfterEach(func(ctx SpecContext) {
		Expect(alice.Client.Create(ctx, kit.Pod(ns, "works"), client.DryRunAll)).To(Succeed())
	})
	send := func(ctx context.Context, method, path, mediaType, body string) (code int, text string) {
		GinkgoHelper()
		return sendSoon(ctx, mallory, method, path, mediaType, strings.NewReader(body))
	}
	shouldRefuse := func(ctx context.Context, method, path, mediaType, body, reason string) {
		GinkgoHelper()
		code, text := send(ctx, method, path, mediaType, body)
		Expect(code).To(BeElementOf(http.StatusForbidden, http.StatusUnprocessableEntity), "%s %s: %.300s", method, mediaType, text)
		Expect(text).To(ContainSubstring(reason))
	}
	rule := `"x-kubernetes-validations":[{"rule":` + strconv.Quote(copied) + `}]`
	claim := func(expression string) string {
		return `{"metadata":{"name":"costly"},"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"a","selectors":[{"cel":{"expression":` +
			strconv.Quote(expression) + `}}]}}]}}}`
	}

	attack("the gateway, by an expression of 300 bytes of a converted tenant's policy", "idea: each call copies all before it four times", func(ctx SpecContext) {
		shouldRefuse(ctx, http.MethodPost, policyPath, jsonType, fmt.Sprintf(policyToFill, `"validations":[{"expression":`+strconv.Quote(copied)+`}]`), tooMuch)
	})

	attack("the super cluster's apiserver, by a rule of 300 bytes of a converted tenant's definition", "idea: it compiles the rules of all tenants", func(ctx SpecContext) {
		code, text := send(ctx, http.MethodPost, definitions, jsonType, nestedDefinition(`{"type":"object"}`, ""))
		Expect(code).To(Equal(http.StatusCreated), text)
		DeferCleanup(func(ctx SpecContext) {
			code, text := send(ctx, http.MethodDelete, definitions+"/widgets.nested.example.com", jsonType, "")
			Expect(code).To(Equal(http.StatusOK), text)
		})
		object := nestedDefinition(`{"type":"object",`+rule+`}`, "")
		const path, schema = definitions + "/widgets.nested.example.com", "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
		shouldRefuse(ctx, http.MethodPost, definitions, jsonType, object, tooMuchWork)
		shouldRefuse(ctx, http.MethodPut, path, jsonType, object, tooMuchWork)
		shouldRefuse(ctx, http.MethodPatch, path, "application/merge-patch+json", object, tooMuchWork)
		shouldRefuse(ctx, http.MethodPatch, path+"?fieldManager=m&force=true", "application/apply-patch+yaml", object, tooMuchWork)
		shouldRefuse(ctx, http.MethodPatch, path, jsonPatch,
			`[{"op":"add","path":"`+schema+`","value":[{"rule":`+strconv.Quote(copied)+`}]}]`, tooMuchWork)
	})

	attack("the super cluster's apiserver, by a converted tenant's printer column whose path is a megabyte of spaces",
		"idea: the parser calls itself for each space, which ends the process", func(ctx SpecContext) {
			column := `"additionalPrinterColumns":[{"name":"x","type":"string","jsonPath":".a` + strings.Repeat(" ", 1_000_000) + `"}],`
			shouldRefuse(ctx, http.MethodPost, definitions, jsonType, nestedDefinition(`{"type":"object"}`, column), "use a shorter one")
		})

	attack("the super cluster's apiserver, by a selector of devices of 300 bytes of a converted tenant", "idea: it compiles it to validate the claim", func(ctx SpecContext) {
		shouldRefuse(ctx, http.MethodPost, claims, jsonType, claim(copied), tooMuchWork)
		code, text := send(ctx, http.MethodPost, claims, jsonType, claim("device.driver == 'a'"))
		Expect(code).To(Equal(http.StatusCreated), text)
		const selector = "/spec/devices/requests/0/exactly/selectors/0/cel/expression"
		shouldRefuse(ctx, http.MethodPatch, claims+"/costly", jsonPatch, `[{"op":"replace","path":"`+selector+`","value":`+strconv.Quote(copied)+`}]`, tooMuchWork)
		shouldRefuse(ctx, http.MethodPatch, claims+"/costly", "application/merge-patch+json", claim(copied), tooMuchWork)
	})

	attack("the super cluster's apiserver, by what a converted tenant's JSON patch makes of a template of claims",
		"idea: it compiles a template again before it refuses the change", func(ctx SpecContext) {
			const templates, cel = "/apis/resource.k8s.io/v1/namespaces/" + ns + "/resourceclaimtemplates", "/spec/spec/devices/requests/0/exactly/selectors/0/cel"
			body := `{"metadata":{"name":"costly"},"spec":{"spec":{"devices":{"config":[{"opaque":{"driver":"a.example.com","parameters":{"a":` + strconv.Quote(copied) + `}}}],` +
				`"requests":[{"name":"a","exactly":{"deviceClassName":"a","selectors":[{"cel":{"expression":"true"}}]}}]}}}}`
			code, text := send(ctx, http.MethodPost, templates, jsonType, body)
			Expect(code).To(Equal(http.StatusCreated), text)
			expression := strconv.Quote(copied)
			for patch, reason := range map[string]string{
				`{"op":"replace","path":"` + cel + `","value":{"expression":` + expression + `}}`:                                                                  tooMuchWork,
				`{"op":"replace","path":"` + cel + `/expression","value":` + expression + `,"Value":"true"}`:                                                       tooMuchWork,
				`{"op":"copy","from":"/spec/spec/devices/config/0/opaque/parameters/a","path":"` + cel + `/expression"}`:                                           "cannot move or copy",
				`{"op":"replace","path":"","value":{"a":` + expression + `}},{"op":"move","from":"/a","path":"` + cel + `/expression"}`:                            "",
				`{"op":"add","path":"/metadata/annotations","value":{"a":` + expression + `}},{"op":"copy","from":"/metadata/annotations/a","path":"` + cel + `"}`: "",
			} {
				code, text := send(ctx, http.MethodPatch, templates+"/costly", jsonPatch, "["+patch+"]")
				Expect(code).To(BeElementOf(http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity), "%s: %.300s", patch, text)
				Expect(text).To(ContainSubstring(reason))
			}
		})

	attack("the super cluster's apiserver, by a rule that a converted tenant's policy writes into a definition", "idea: policies change an object behind the gateway",
		func(ctx SpecContext) {
			addRule(ctx, mallory)
			Eventually(func(ctx context.Context) (string, error) {
				code, text := send(ctx, http.MethodPost, definitions+"?dryRun=All", jsonType, nestedDefinition(`{"type":"object"}`, ""))
				if code == http.StatusCreated {
					return "", errors.New("the policy does not apply yet")
				}
				return text, nil
			}).WithContext(ctx).Should(ContainSubstring(tooMuchWork))
		})
}
