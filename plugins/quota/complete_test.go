package quota

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// classes is a cache of the super cluster's classes.
type classes struct {
	cache.Cache

	objects client.Reader
}

func (c classes) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.objects.Get(ctx, key, obj, opts...)
}

func (c classes) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.objects.List(ctx, list, opts...)
}

func classesOf(objects ...client.Object) classes {
	return classes{objects: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()}
}

// TestWhatAdmissionAdds checks that the defaults of admission count before they
// are applied: a default priority class, and the overhead of a runtime class.
func TestWhatAdmissionAdds(t *testing.T) {
	defaultClass := func(name string, value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, GlobalDefault: true, Value: value}
	}
	sandbox := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"}, Handler: "sandbox", Overhead: &nodev1.Overhead{PodFixed: amounts(cpu("250m"))},
	}
	sandboxed := func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("sandbox") }
	ofClass := &tenancyv1alpha1.QuotaSpec{PriorityClasses: []tenancyv1alpha1.PriorityClassQuota{{
		Name: "standard", Hard: tenancyv1alpha1.PodLimits{"pods": "0"},
	}}}
	for name, tc := range map[string]struct {
		spec    *tenancyv1alpha1.QuotaSpec
		classes []client.Object
		change  func(*corev1.Pod)
		want    string // empty: allowed
	}{
		"the default class":              {ofClass, []client.Object{defaultClass("standard", 10)}, nil, "pods of priority class standard: used 0, asked 1, hard 0"},
		"the lowest of several":          {ofClass, []client.Object{defaultClass("standard", 10), defaultClass("lower", 5)}, nil, ""},
		"no default":                     {ofClass, nil, nil, ""},
		"a class of its own":             {ofClass, []client.Object{defaultClass("standard", 10)}, inClass("high"), ""},
		"overhead":                       {hard("requests.cpu", "1"), []client.Object{sandbox}, sandboxed, "requests.cpu: used 0, asked 1250m, hard 1"},
		"room for the overhead":          {hard("requests.cpu", "1250m"), []client.Object{sandbox}, sandboxed, ""},
		"a runtime class that is gone":   {hard("requests.cpu", "1"), nil, sandboxed, ""},
		"a pod without a runtime class":  {hard("requests.cpu", "1"), []client.Object{sandbox}, nil, ""},
		"overhead beside a priority one": {ofClass, []client.Object{sandbox, defaultClass("standard", 1)}, sandboxed, "pods of priority class standard"},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := limited(t, tc.spec)
			q.env.Cache = classesOf(tc.classes...)
			r := creation("a", needs(cpu("1")))
			if tc.change != nil {
				tc.change(r.Object.(*corev1.Pod))
			}
			before := r.Object.DeepCopyObject()
			err := q.Validate(t.Context(), r)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(before, r.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}
