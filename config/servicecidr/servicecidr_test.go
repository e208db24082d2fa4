package servicecidr

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func read(t *testing.T) *Manifests {
	t.Helper()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManifests: the parts fit together, and with what programs know of them.
func TestManifests(t *testing.T) {
	m := read(t)
	if diff := cmp.Diff([]string{DefaultPool}, m.Pool.Spec.CIDRs); diff != "" {
		t.Errorf("ranges of the pool (-want +got):\n%s", diff)
	}
	if m.Pool.Labels[names.ServiceCIDRPool] != "true" {
		t.Errorf("the pool has the labels %v", m.Pool.Labels)
	}
	if m.Policy.Name != names.ServiceAddressPolicy || m.Binding.Spec.PolicyName != names.ServiceAddressPolicy {
		t.Errorf("the policy is %s and the binding is of %s, want %s", m.Policy.Name, m.Binding.Spec.PolicyName, names.ServiceAddressPolicy)
	}
	ranges, err := metav1.LabelSelectorAsSelector(m.Binding.Spec.ParamRef.Selector)
	if err != nil || !ranges.Matches(labels.Set(m.Pool.Labels)) || ranges.Matches(labels.Set{}) {
		t.Errorf("the binding selects %v (%v), want the pool and no other range", ranges, err)
	}
	tenants, err := metav1.LabelSelectorAsSelector(m.Policy.Spec.MatchConstraints.NamespaceSelector)
	if err != nil || !tenants.Matches(labels.Set{names.VCName: "blue"}) || tenants.Matches(labels.Set{}) {
		t.Errorf("the policy selects namespaces by %v (%v), want those of tenants", tenants, err)
	}
	if !slices.Equal(m.Binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
		t.Errorf("the binding's actions are %v", m.Binding.Spec.ValidationActions)
	}
}

// compile makes of the policy what an apiserver makes of it.
func compile(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		compiled := compiler.CompileAndStoreVariable(
			&validating.Variable{Name: v.Name, Expression: v.Expression}, declared, environment.StoredExpressions)
		if compiled.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, compiled.Error)
		}
	}
	var validations []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
	}
	none := compiler.CompileCondition(nil, declared, environment.StoredExpressions)
	return validating.NewValidator(compiler.CompileCondition(validations, declared, environment.StoredExpressions),
		nil, none, none, policy.Spec.FailurePolicy, nil)
}

// decide asks a policy about a Service in a namespace with annotations; was is
// nil for a new one.
func decide(
	t *testing.T, policy validating.Validator, now, was *corev1.Service, annotations map[string]string, ranges ...string,
) validating.PolicyDecision {
	t.Helper()
	const ns = "blue-shop"
	kind, resource := corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithResource("services")
	operation, old, options := admission.Create, runtime.Object(nil), runtime.Object(&metav1.CreateOptions{})
	if was != nil {
		operation, old, options = admission.Update, was, &metav1.UpdateOptions{}
	}
	attributes := admission.NewAttributesRecord(now, old, kind, ns, "web", resource, "", operation, options, false, nil)
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedObject: now, VersionedOldObject: old, VersionedKind: kind,
	}
	pool := &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Annotations: annotations}}
	result := policy.Validate(t.Context(), resource, versioned, pool, namespace, celconfig.RuntimeCELCostBudget, nil)
	if len(result.Decisions) != 1 {
		t.Fatalf("%d decisions, want one", len(result.Decisions))
	}
	return result.Decisions[0]
}

// addressed returns a Service as it is after the super cluster has chosen its
// addresses.
func addressed(ips ...string) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: ips}}
	if len(ips) > 0 {
		s.Spec.ClusterIP = ips[0]
	}
	return s
}

func TestPolicy(t *testing.T) {
	const v4, v6 = "10.104.0.0/13", "fd00:104::/64"
	part := func(cidr string) map[string]string {
		return map[string]string{names.Cluster: "blue", names.VCUID: "uid", names.ServiceCIDR: cidr}
	}
	both := map[string]string{
		names.Cluster: "blue", names.VCUID: "uid", names.ServiceCIDR: "10.104.16.0/20", names.SecondaryServiceCIDR: "fd00:104::1:0/116",
	}
	none := map[string]string{names.Cluster: "blue", names.VCUID: "uid"}
	tests := map[string]struct {
		now, was    *corev1.Service
		annotations map[string]string
		allowed     bool
	}{
		"a new address outside of the pool":        {addressed("10.96.0.7"), nil, none, true},
		"the last address before the pool":         {addressed("10.103.255.255"), nil, none, true},
		"the first address of the pool":            {addressed("10.104.0.0"), nil, none, false},
		"the last address of the pool":             {addressed("10.111.255.255"), nil, none, false},
		"an IPv6 address outside of the pool":      {addressed("fd00:105::7"), nil, none, true},
		"an IPv6 address of the pool":              {addressed("fd00:104::7"), nil, none, false},
		"a second address of the pool":             {addressed("10.96.0.7", "fd00:104::7"), nil, none, false},
		"headless":                                 {addressed("None"), nil, none, true},
		"an external name":                         {addressed(), nil, none, true},
		"of the tenant's part":                     {addressed("10.104.16.7"), nil, part("10.104.16.0/20"), true},
		"of the tenant's IPv6 part":                {addressed("fd00:104::1:7"), nil, part("fd00:104::1:0/112"), true},
		"of another tenant's part":                 {addressed("10.104.32.10"), nil, part("10.104.16.0/20"), false},
		"behind one of the tenant's part":          {addressed("10.104.16.7", "fd00:104::7"), nil, part("10.104.16.0/20"), false},
		"of both parts of the tenant":              {addressed("10.104.16.7", "fd00:104::1:7"), nil, both, true},
		"of the secondary part alone":              {addressed("fd00:104::1:7"), nil, both, true},
		"behind one of both parts":                 {addressed("10.104.16.7", "fd00:104::2:7"), nil, both, false},
		"before one of the secondary part":         {addressed("10.104.32.7", "fd00:104::1:7"), nil, both, false},
		"outside of the pool, for one with a part": {addressed("10.96.0.7"), nil, part("10.104.16.0/20"), true},
		"a part that is empty":                     {addressed("10.104.16.7"), nil, part(""), false},
		"a part that is none":                      {addressed("10.104.16.7"), nil, part("all"), false},
		"an IPv4 address of the pool in IPv6":      {addressed("::ffff:10.104.0.7"), nil, none, false},
		"a namespace without annotations":          {addressed("10.104.16.7"), nil, nil, false},
		"the root namespace":                       {addressed("10.104.16.7"), nil, map[string]string{names.Cluster: "blue-shop"}, true},

		"an update that has no address":                {addressed(), addressed(), none, true},
		"an update that keeps an address of the pool":  {addressed("10.104.32.10"), addressed("10.104.32.10"), none, true},
		"an update to an address of the pool":          {addressed("10.104.32.10"), addressed(), none, false},
		"an update to another address of the pool":     {addressed("10.104.32.10"), addressed("10.104.32.11"), none, false},
		"an update that adds an address of the pool":   {addressed("10.96.0.7", "fd00:104::7"), addressed("10.96.0.7"), none, false},
		"an update to an address outside of the pool":  {addressed("10.96.0.7"), addressed("None"), none, true},
		"an update to an address of the tenant's part": {addressed("10.104.16.7"), addressed("None"), part("10.104.16.0/20"), true},
	}
	policy := compile(t, read(t).Policy)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(t, policy, tt.now, tt.was, tt.annotations, v4, v6)
			if allowed := got.Action == validating.ActionAdmit; allowed != tt.allowed {
				t.Errorf("allowed: %t, want %t: %s", allowed, tt.allowed, got.Message)
			}
		})
	}
}

// TestRejection: what the syncer tells a rejection by, and what a tenant reads of it.
func TestRejection(t *testing.T) {
	policy := compile(t, read(t).Policy)
	got := decide(t, policy, addressed("10.104.32.10"), nil, map[string]string{names.ServiceCIDR: "10.104.16.0/20"}, DefaultPool)
	if got.Action != validating.ActionDeny || got.Reason != metav1.StatusReasonForbidden {
		t.Errorf("the policy answers %s for the reason %s, want %s for %s",
			got.Action, got.Reason, validating.ActionDeny, metav1.StatusReasonForbidden)
	}
	for _, part := range []string{"10.104", "tenancy"} {
		if strings.Contains(got.Message, part) {
			t.Errorf("the message has %q: %s", part, got.Message)
		}
	}
	failed := decide(t, policy, addressed("10.104.32.10"), nil, map[string]string{names.ServiceCIDR: "all"}, DefaultPool)
	if failed.Action != validating.ActionDeny || failed.Reason == metav1.StatusReasonForbidden {
		t.Errorf("a policy that fails answers %s for the reason %s, want %s for another", failed.Action, failed.Reason, validating.ActionDeny)
	}
}
