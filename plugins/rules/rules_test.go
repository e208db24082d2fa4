package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

var red = plugins.Tenant{Key: "red", Name: "red", Namespace: "team", UID: "red-uid"}

// ruleOf returns a rule about pods, or the given kinds.
func ruleOf(expression string, kinds ...tenancyv1alpha1.QuotaKind) tenancyv1alpha1.QuotaRule {
	if kinds == nil {
		kinds = []tenancyv1alpha1.QuotaKind{"Pod"}
	}
	return tenancyv1alpha1.QuotaRule{Name: "test", Kinds: kinds, Expression: expression, Message: "so it is not"}
}

func virtualCluster(rules ...tenancyv1alpha1.QuotaRule) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: red.Namespace, Name: red.Name, UID: red.UID, Labels: map[string]string{"tier": "gold"},
	}}
	vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Rules: rules}
	vc.Status.ClusterNamespace = red.Key
	return vc
}

// clientOf returns a client of a cluster with these objects.
func clientOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// counted returns the same usage and limits for every tenant.
func counted(plugins.Request) (used, hard corev1.ResourceList, err error) {
	return corev1.ResourceList{"pods": resource.MustParse("3"), "requests.cpu": resource.MustParse("1500m"), "services": {}},
		corev1.ResourceList{"pods": resource.MustParse("10")}, nil
}

func uncounted(plugins.Request) (used, hard corev1.ResourceList, err error) {
	return nil, nil, errors.New("usage is not counted")
}

// pods returns the kinds that tenants declare in these tests.
func pods() []plugins.Kind {
	return []plugins.Kind{plugintest.KindOf(corev1.SchemeGroupVersion.WithKind("Pod"), &corev1.Pod{})}
}

func rulesFor(t *testing.T, usage Usage, common *set, rules ...tenancyv1alpha1.QuotaRule) *Rules {
	t.Helper()
	env := plugins.Environment{Client: clientOf(t, virtualCluster(rules...)), Logger: logr.Discard(), Kinds: pods()}
	return newRules(env, usage, common)
}

func podRequest() plugins.Request {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red-shop", Name: "web", Labels: map[string]string{"app": "web"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "web:latest", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
	}}}
	return plugins.Request{Tenant: red, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Object: pod}
}

// changed returns a request to change an existing pod.
func changed(r plugins.Request) plugins.Request {
	r.Was = r.Object.DeepCopyObject().(client.Object)
	return r
}

func TestValidate(t *testing.T) {
	const yes, no = "", "so it is not"
	const cpu = "quantity(object.spec.containers[0].resources.requests.cpu)"
	for name, tc := range map[string]struct {
		rule    tenancyv1alpha1.QuotaRule
		request plugins.Request
		want    string
	}{
		"true":                   {ruleOf("object.metadata.name == 'web'"), podRequest(), yes},
		"false":                  {ruleOf("!object.spec.containers.exists(c, c.image.endsWith(':latest'))"), podRequest(), no},
		"of another kind":        {ruleOf("false", "Service"), podRequest(), yes},
		"of many kinds":          {ruleOf("false", "Service", "Pod"), podRequest(), no},
		"the tenant's name":      {ruleOf("tenant.name == 'red' && tenant.namespace == 'team' && tenant.key == 'red'"), podRequest(), yes},
		"the tenant's labels":    {ruleOf("tenant.labels['tier'] == 'gold'"), podRequest(), yes},
		"an optional label":      {ruleOf("tenant.labels[?'tier'].orValue('') == 'gold' && tenant.labels[?'team'].orValue('') == ''"), podRequest(), yes},
		"a reserve":              {ruleOf("object.spec.?priorityClassName.orValue('') == 'high' || used['pods'].asInteger() + 7 < hard['pods'].asInteger()"), podRequest(), no},
		"a missing label":        {ruleOf("!('team' in tenant.labels)"), podRequest(), yes},
		"used":                   {ruleOf("used['pods'].isLessThan(quantity('4'))"), podRequest(), yes},
		"used too much":          {ruleOf("used['pods'].isLessThan(quantity('3'))"), podRequest(), no},
		"used and requested":     {ruleOf("used['requests.cpu'].add(" + cpu + ").compareTo(quantity('2')) <= 0"), podRequest(), yes},
		"unused":                 {ruleOf("used['services'] == quantity('0')"), podRequest(), yes},
		"half of hard":           {ruleOf("used['pods'].asInteger() < hard['pods'].asInteger() / 2"), podRequest(), yes},
		"no limit":               {ruleOf("!('requests.cpu' in hard)"), podRequest(), yes},
		"on creation":            {ruleOf("oldObject == null"), podRequest(), yes},
		"on update":              {ruleOf("oldObject != null && oldObject.metadata.name == object.metadata.name"), changed(podRequest()), yes},
		"a missing field":        {ruleOf("object.spec.hostname == 'a'"), podRequest(), "rule test cannot be evaluated: no such key: hostname"},
		"a device never used":    {ruleOf("used['requests.nvidia.com/gpu'] == quantity('0')"), podRequest(), "no such key"},
		"no bool":                {ruleOf("object.metadata.name"), podRequest(), "it gives string and not bool"},
		"a syntax error":         {ruleOf("object."), podRequest(), "rule test does not compile: at 1:8: Syntax error"},
		"an unknown field":       {ruleOf("tenant.nmae == 'red'"), podRequest(), "at 1:7: undefined field 'nmae'"},
		"a number as a quantity": {ruleOf("used['pods'] < 3"), podRequest(), "no matching overload"},
		"too many steps":         {ruleOf("lists.range(1000000000).all(a, true)"), podRequest(), "too many steps"},
	} {
		t.Run(name, func(t *testing.T) {
			err := rulesFor(t, counted, nil, tc.rule).Validate(t.Context(), tc.request)
			expect(t, err, tc.want)
			if _, rejected := errors.AsType[*plugins.RejectionError](err); rejected != (tc.want == no) {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// expect checks the text of an error; empty if none is expected.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestWithoutAnybodyWhoCounts(t *testing.T) {
	expect(t, rulesFor(t, uncounted, nil, ruleOf("object.metadata.name == 'web'")).Validate(t.Context(), podRequest()), "")
	for _, expression := range []string{"used['pods'] == quantity('0')", "size(hard) == 0"} {
		expect(t, rulesFor(t, uncounted, nil, ruleOf(expression)).Validate(t.Context(), podRequest()), "usage is not counted")
	}
}

func TestAnotherVirtualClusterOfTheName(t *testing.T) {
	request := podRequest()
	request.Tenant.UID = "another"
	expect(t, rulesFor(t, counted, nil).Validate(t.Context(), request), "does not have the UID")
}

// TestRulesForAllComeFirst checks that the rules of all tenants are evaluated
// before the tenant's own.
func TestRulesForAllComeFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "rules:\n- {name: labelled, kinds: [Pod], expression: \"'app' in object.metadata.labels\", message: pods need the label app}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	common, err := read(file, pods())
	if err != nil {
		t.Fatal(err)
	}
	r := rulesFor(t, counted, common, ruleOf("false"))
	request := podRequest()
	expect(t, r.Validate(t.Context(), request), "so it is not")
	request.Object.SetLabels(map[string]string{"tier": "gold"})
	expect(t, r.Validate(t.Context(), request), "pods need the label app")
}

// TestFile checks that reading a file returns all errors in it.
func TestFile(t *testing.T) {
	const good = "{name: a, kinds: [Pod], expression: 'true', message: not so}"
	for name, tc := range map[string]struct{ content, want string }{
		"good":           {"rules: [" + good + "]", ""},
		"no YAML":        {"rules: [", "rules.yaml"},
		"empty":          {"", "has no rules"},
		"another field":  {"rules: [{name: a, kind: Pod}]", "unknown field"},
		"no name":        {"rules: [{kinds: [Pod], expression: 'true', message: not so}]", "rules[0].name: Required"},
		"twice":          {"rules: [" + good + ", " + good + "]", "rules[1].name: Duplicate"},
		"no kinds":       {"rules: [{name: a, expression: 'true', message: not so}]", "rules[0].kinds: Required"},
		"unknown kind":   {"rules: [{name: a, kinds: [Node], expression: 'true', message: not so}]", "rules[0].kinds: Invalid"},
		"no message":     {"rules: [{name: a, kinds: [Pod], expression: 'true'}]", "rules[0].message: Required"},
		"no expression":  {"rules: [{name: a, kinds: [Pod], message: not so}]", "rules[0].expression: Invalid value: at 1:0: Syntax error"},
		"bad expression": {"rules: [" + good + ", {name: b, kinds: [Pod], expression: 'objekt', message: not so}]", "rules[1].expression: Invalid value: at 1:1: undeclared reference to 'objekt'"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "rules.yaml")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := read(file, pods())
			expect(t, err, tc.want)
		})
	}
	_, err := Registration(counted, filepath.Join(t.TempDir(), "missing")).InitFn(plugins.Environment{})
	expect(t, err, "read the rules of all tenants: open")
}

// TestCompiledOnce checks that only changed rules are compiled again.
func TestCompiledOnce(t *testing.T) {
	r := rulesFor(t, counted, nil)
	first := r.ownOf(virtualCluster(ruleOf("true")))
	if again := r.ownOf(virtualCluster(ruleOf("true"))); again.set != first.set {
		t.Error("it was compiled again")
	}
	if other := r.ownOf(virtualCluster(ruleOf("false"))); other.set == first.set {
		t.Error("a change was not seen")
	}
	if none := r.ownOf(virtualCluster()); none.set != nil {
		t.Error("no rules are some")
	}
}

func TestCondition(t *testing.T) {
	r := rulesFor(t, counted, nil)
	for name, tc := range map[string]struct {
		rules []tenancyv1alpha1.QuotaRule
		want  string
	}{
		"none":  {nil, ""},
		"good":  {[]tenancyv1alpha1.QuotaRule{ruleOf("true")}, "True Valid: All rules can be evaluated"},
		"bad":   {[]tenancyv1alpha1.QuotaRule{ruleOf("true"), ruleOf("a\n+")}, "False InvalidExpression: spec.quota.rules[1].expression: Invalid value: at 2:2: Syntax error"},
		"large": {[]tenancyv1alpha1.QuotaRule{ruleOf(strings.Repeat("x", 5000))}, "False InvalidExpression: spec.quota.rules[0].expression: Invalid value: at 1:1: undeclared reference to 'xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			vc := virtualCluster(tc.rules...)
			c := conditionOf(vc, r.ownOf(vc))
			got := ""
			if c != nil {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if !strings.HasPrefix(got, tc.want) || len(got) > maxMessage+100 || (got == "") != (tc.want == "") {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	vc := virtualCluster(ruleOf("!object.spec.containers.exists(c, c.image.endsWith(':latest')) || used['pods'].isLessThan(hard['pods'])"))
	r := newRules(plugins.Environment{}, counted, nil)
	request := podRequest()
	s := r.ownOf(vc).set
	for b.Loop() {
		if err := s.check(b.Context(), "Pod", r.variables(request, vc), &expression.Budget{}); err != nil {
			b.Fatal(err)
		}
	}
}
