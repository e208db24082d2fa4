package convert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	own "github.com/virtualcluster/virtualcluster/internal/names"
)

// isEvaluated reports whether the tenant's own admission evaluates what the
// request changes.
func (c *call) isEvaluated() bool {
	return c.Admission != nil && c.Admission.IsActive() && !c.isMany() && (c.info.Verb != verbGet || c.isStream())
}

// setRequester adds the tenant's user to a request that the tenant's own
// admission evaluates.
func (c *call) setRequester(ctx context.Context, header http.Header) error {
	who, ok := request.UserFrom(ctx)
	if !ok || !c.isEvaluated() {
		return nil
	}
	account := c.Account
	if c.isFenced() {
		account = requester.Account{Name: serviceaccount.MakeUsername(c.Tenant, own.ConvertedAccount)}
	}
	return account.SetHeader(header, who)
}

// MaxAdmission is how many objects of each kind of admission a tenant may have:
// the gateway evaluates all of them for each request.
const MaxAdmission = 100

// confirmAdmission returns an error if an object of admission does not compile,
// or its author may not read what it reads.
func (c *call) confirmAdmission(ctx context.Context, before, after document.Object) error {
	name := nameOf(after)
	if before == nil && c.Admission != nil && c.Admission.Count(c.kind.Kind) >= MaxAdmission {
		return apierrors.NewForbidden(c.kind.GroupResource(), name, fmt.Errorf("there are %d of them, which is the limit", MaxAdmission))
	}
	if isBinding(c.kind.Kind) {
		return c.confirmSelected(ctx, before, after)
	}
	if err := c.compile(ctx, after); err != nil {
		return err
	}
	return c.confirmParameters(ctx, after)
}

// compile returns an error if expressions of an object of admission do not compile,
// or were written too often.
func (c *call) compile(ctx context.Context, object document.Object) error {
	var wrong field.ErrorList
	var invalid error
	wait, err := c.Expressions.Do(ctx, c.Tenant, func() (work int) {
		wrong, work, invalid = expressions.Check(c.kind.Kind, object)
		return work
	})
	switch {
	case err != nil:
		return apierrors.NewTimeoutError("expressions are compiled one at a time: try again", 1)
	case wait > 0:
		return tooOften(wait, "the expressions of webhooks and policies are too long for how often they are written; shorten them")
	case invalid != nil:
		return badRequest(invalid)
	case len(wrong) > 0:
		return apierrors.NewInvalid(schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}, nameOf(object), wrong)
	}
	return nil
}

// bindingSuffix ends the kinds of bindings of policies, and their resources in
// the singular.
const bindingSuffix = "Binding"

func isBinding(kind string) bool { return strings.HasSuffix(kind, bindingSuffix) }

// confirmParameters returns an error if the author of a policy may not read its
// parameters: messages of a policy show them.
func (c *call) confirmParameters(ctx context.Context, policy document.Object) error {
	asked, known, err := c.parameters(policy)
	if err != nil || !known {
		return err
	}
	asked.Verb, asked.Namespace, asked.Name = verbGet, anything, anything
	return c.confirmRead(ctx, nameOf(policy), asked)
}

// confirmSelected returns an error if the author of a binding may not read the
// parameters that it selects. Those of a policy that does not exist are of any
// kind.
func (c *call) confirmSelected(ctx context.Context, before, after document.Object) error {
	selected, was := paramRefOf(after), paramRefOf(before)
	if selected == nil || was != nil && sameJSON(selected, was) && policyOf(before) == policyOf(after) {
		return nil
	}
	policy, err := c.readPolicy(ctx, policyOf(after))
	if err != nil {
		return err
	}
	asked, known, err := c.parameters(policy)
	if err != nil || !known {
		asked = authorizer.AttributesRecord{APIGroup: anything, APIVersion: anything, Resource: anything}
	}
	asked.Verb = verbList
	asked.Namespace, _ = selected["namespace"].(string)
	if asked.Name, _ = selected["name"].(string); asked.Name != "" {
		asked.Verb = verbGet
	}
	return c.confirmRead(ctx, nameOf(after), asked)
}

func paramRefOf(binding document.Object) document.Object {
	selected, _, _ := unstructured.NestedMap(binding, "spec", "paramRef")
	return selected
}

func policyOf(binding document.Object) string {
	name, _, _ := unstructured.NestedString(binding, "spec", "policyName")
	return name
}

// readPolicy returns the policy of a binding of the kind; nil if there is none.
func (c *call) readPolicy(ctx context.Context, name string) (document.Object, error) {
	stored, err := naming.Shelved(name)
	if err != nil || stored == "" {
		return nil, nil //nolint:nilerr // no policy has that name
	}
	found, _ := kinds.FindKind(c.kind.Group, strings.TrimSuffix(c.kind.Kind, bindingSuffix))
	policies := *c
	policies.info = &request.RequestInfo{Resource: found.Resource}
	policy := document.Object{}
	code, err := c.send(ctx, c.Fenced, http.MethodGet, policies.pathOf(c.storedType(), c.namespace, stored, ""), nil, &policy)
	switch {
	case err != nil:
		return nil, err
	case code == http.StatusNotFound:
		return nil, nil
	case code != http.StatusOK:
		return nil, fmt.Errorf("read the policy of a binding: the super cluster responded %d", code)
	}
	return policy, nil
}

// parameters returns what to ask for the kind of a policy's parameters, and
// false if it has none.
func (c *call) parameters(policy document.Object) (authorizer.AttributesRecord, bool, error) {
	params, ok, _ := unstructured.NestedMap(policy, "spec", "paramKind")
	if !ok {
		return authorizer.AttributesRecord{}, false, nil
	}
	version, _ := params["apiVersion"].(string)
	kind, _ := params["kind"].(string)
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		return authorizer.AttributesRecord{}, false, badRequest(err)
	}
	return authorizer.AttributesRecord{
		APIGroup: parsed.Group, APIVersion: parsed.Version, Resource: c.resourceOf(parsed.WithKind(kind)),
	}, true, nil
}

// confirmRead returns an error if the author of a policy or a binding may not
// read parameters.
func (c *call) confirmRead(ctx context.Context, name string, asked authorizer.AttributesRecord) error {
	asked.User, _ = request.UserFrom(ctx)
	asked.ResourceRequest = true
	decision, _, err := c.Authorize.Authorize(ctx, asked)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	return apierrors.NewForbidden(c.kind.GroupResource(), name,
		errors.Join(fmt.Errorf("user must have %q permission on the parameters", asked.Verb), err))
}

// anything is a name or resource of which none is known.
const anything = "*"

// resourceOf returns the resource of a kind of the tenant; all if it has none.
func (c *call) resourceOf(kind schema.GroupVersionKind) string {
	if found, ok := kinds.FindKind(kind.Group, kind.Kind); ok {
		return found.Resource
	}
	crds, _ := c.CRDs.All(c.Tenant)
	for _, crd := range crds {
		if crd.Spec.Group == kind.Group && crd.Spec.Names.Kind == kind.Kind {
			return crd.Spec.Names.Plural
		}
	}
	return anything
}
