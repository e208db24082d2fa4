package converted_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/admission"
	syncer "github.com/virtualcluster/virtualcluster/syncer/converted"
)

// TestWebhook checks that the webhook is called for all kinds that are counted,
// and does not let them pass when it is away.
func TestWebhook(t *testing.T) {
	objects, err := converted.Webhook()
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, object := range objects {
		if object.GetKind() == "ValidatingWebhookConfiguration" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration); err != nil {
				t.Fatal(err)
			}
		}
	}
	hook := configuration.Webhooks[0]
	if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.ClientConfig.Service.Path != admission.Path {
		t.Errorf("the webhook has the failure policy %s and the path %s", *hook.FailurePolicy, *hook.ClientConfig.Service.Path)
	}
	for _, kind := range syncer.Kinds() {
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion("v1"))
		called := slices.ContainsFunc(hook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource)
		})
		if !called {
			t.Errorf("the webhook is not called for %s", resource)
		}
	}
	limited := regexp.MustCompile(`'([a-z0-9.]*/[a-z]+)'`).FindAllStringSubmatch(conditionOf(t, configuration.Webhooks[1], "not-limited"), -1)
	for _, each := range limited {
		group, resource, _ := strings.Cut(each[1], "/")
		if !slices.ContainsFunc(hook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
		}) {
			t.Errorf("neither webhook limits what tenants store of %s", each[1])
		}
	}
	if len(limited) != len(syncer.Kinds())-1 { // of Namespaces, which vc-gateway writes
		t.Errorf("%d kinds are limited twice or not at all", len(syncer.Kinds())-1-len(limited))
	}
	for _, hook := range configuration.Webhooks[1:] {
		if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.ClientConfig.Service.Path != admission.StoragePath {
			t.Errorf("%s has the failure policy %s and the path %s", hook.Name, *hook.FailurePolicy, *hook.ClientConfig.Service.Path)
		}
	}
	at, err := converted.WebhookAt("127.0.0.1:9443")
	if err != nil {
		t.Fatal(err)
	}
	here := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(at.Object, here); err != nil {
		t.Fatal(err)
	}
	for i, hook := range here.Webhooks {
		if want := "https://127.0.0.1:9443" + *configuration.Webhooks[i].ClientConfig.Service.Path; *hook.ClientConfig.URL != want {
			t.Errorf("%s is at %s, want %s", hook.Name, *hook.ClientConfig.URL, want)
		}
	}
}

// conditionOf returns the expression of a condition of a webhook.
func conditionOf(t *testing.T, hook admissionregistrationv1.ValidatingWebhook, name string) string {
	t.Helper()
	for _, condition := range hook.MatchConditions {
		if condition.Name == name {
			return condition.Expression
		}
	}
	t.Fatalf("%s has no condition %s", hook.Name, name)
	return ""
}

// TestWebhookCounts checks that vc-syncer may count all kinds that tenants have.
func TestWebhookCounts(t *testing.T) {
	objects, err := converted.Webhook()
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	for _, object := range objects {
		if object.GetKind() == "ClusterRole" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, kind := range kinds.All() {
		if !kind.Served() || kind.Class == kinds.Answered || kind.Class == kinds.Shown || kind.Group == "events.k8s.io" {
			continue
		}
		group := kind.StoredAs("").Group
		if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			resources := slices.Contains(rule.Resources, kind.Resource) || slices.Contains(rule.Resources, "*")
			return slices.Contains(rule.APIGroups, group) && resources && slices.Contains(rule.Verbs, "watch") && len(rule.ResourceNames) == 0
		}) {
			t.Errorf("%s.%s is not counted", kind.Resource, group)
		}
	}
}
