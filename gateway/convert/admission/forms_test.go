package admission

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	upstream "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// TestForms: all native kinds that the super cluster may serve in several forms are
// in the table, with all of them.
func TestForms(t *testing.T) {
	known := map[schema.GroupVersionKind]bool{}
	for _, all := range forms {
		for _, form := range all {
			known[nativeForms.KindFor(form, "")] = true
		}
	}
	for _, kind := range kinds.All() {
		if !kind.Served() || kind.Class != kinds.Placed && !kind.IsNamespace() {
			continue
		}
		served := living(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
		for _, form := range served {
			if len(served) > 1 && !known[form] {
				t.Errorf("%s is one of %d forms, and not in the table", form, len(served))
			}
		}
	}
}

// living returns the versions of a kind that Kubernetes has not removed.
func living(kind schema.GroupKind) (all []schema.GroupVersionKind) {
	for _, version := range scheme.Scheme.VersionsForGroupKind(kind) {
		object, err := scheme.Scheme.New(version.WithKind(kind.Kind))
		if err != nil {
			continue
		}
		if ends, ok := object.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
			if _, minor := ends.APILifecycleRemoved(); minor <= supported {
				continue
			}
		}
		all = append(all, version.WithKind(kind.Kind))
	}
	return all
}

// supported is the minor version of the oldest super cluster.
const supported = 36

// TestFormsOfSubresources: they are those of upstream's mapper.
func TestFormsOfSubresources(t *testing.T) {
	autoscalers := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	for name, tt := range map[string]struct {
		of          schema.GroupVersionResource
		subresource string
		want        []string
	}{
		"versions":                          {autoscalers, "", []string{"autoscaling/v2", "autoscaling/v1"}},
		"versions of a subresource":         {autoscalers, "status", []string{"autoscaling/v2", "autoscaling/v1"}},
		"a subresource that does not exist": {autoscalers, "scale", nil},
		"groups":                            {events, "", []string{"v1", "events.k8s.io/v1"}},
		"one form":                          {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, form := range nativeForms.EquivalentResourcesFor(tt.of, tt.subresource) {
				got = append(got, form.GroupVersion().String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestInThisForm: what was marked is skipped, and nothing else, whatever the other
// conditions of a webhook are.
func TestInThisForm(t *testing.T) {
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	object := func(content map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content}
	}
	plain := object(map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "a"}})
	options := object(map[string]any{"kind": "PodExecOptions", "stdin": true})
	marked := plain.DeepCopy()
	if err := markOtherForm(marked); err != nil {
		t.Fatal(err)
	}
	webhook := &admissionregistrationv1.MutatingWebhook{Name: "a.example.com", MatchConditions: []admissionregistrationv1.MatchCondition{
		{Name: "fails", Expression: "!has(object.unknown.field)"},
	}}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{*webhook}}
	for range 2 {
		wantForm(configuration)
	}
	webhook.MatchConditions = configuration.Webhooks[0].MatchConditions[1:]
	if len(webhook.MatchConditions) != 1 {
		t.Fatalf("%d conditions, want one", len(webhook.MatchConditions))
	}
	matches := func(webhook *admissionregistrationv1.MutatingWebhook, object, before *unstructured.Unstructured) matchconditions.MatchResult {
		attributes := admission.NewAttributesRecord(orNil(object), orNil(before), pods, "shop", "a", pods.GroupVersion().WithResource("pods"), "",
			admission.Update, nil, false, &user.DefaultInfo{Name: "a"})
		versioned := &admission.VersionedAttributes{
			Attributes: attributes, VersionedKind: pods, VersionedObject: orNil(object), VersionedOldObject: orNil(before),
		}
		compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		return upstream.NewMutatingWebhookAccessor("a", "a", webhook).GetCompiledMatcher(compiler).Match(t.Context(), versioned, nil, nil)
	}
	for name, tt := range map[string]struct {
		object, before *unstructured.Unstructured
		want           bool
	}{
		"an object":            {plain, nil, true},
		"both":                 {plain, plain, true},
		"a deletion":           {nil, plain, true},
		"no metadata":          {options, nil, true},
		"neither":              {nil, nil, true},
		"a marked object":      {marked, nil, false},
		"both marked":          {marked, marked, false},
		"a deletion of marked": {nil, marked, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(webhook, tt.object, tt.before); got.Matches != tt.want || got.Error != nil {
				t.Errorf("%+v, want %v", got, tt.want)
			}
		})
	}
	if got := matches(&configuration.Webhooks[0], marked, nil); got.Matches || got.Error != nil {
		t.Errorf("beside a condition that fails: %+v", got)
	}
}
