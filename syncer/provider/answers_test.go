package provider

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answering is a client whose server answers with objects modified by change.
type answering struct {
	client.Client

	change func(client.Object)
}

func (a answering) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	obj.SetResourceVersion("1")
	a.change(obj)
	return nil
}

func (a answering) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	obj.SetResourceVersion("1")
	a.change(obj)
	return nil
}

func TestAnswersAreAboutWhatWasAskedFor(t *testing.T) {
	custom := func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1")
		u.SetKind("Widget")
		return u
	}
	typed := func() client.Object { return &corev1.Pod{} }
	tests := map[string]struct {
		obj    func() client.Object
		change func(client.Object)
		want   error
	}{
		"the object":                          {typed, func(client.Object) {}, nil},
		"the custom resource":                 {custom, func(client.Object) {}, nil},
		"another name":                        {typed, func(o client.Object) { o.SetName("b") }, errOther},
		"another namespace":                   {typed, func(o client.Object) { o.SetNamespace("kube-system") }, errOther},
		"an empty object":                     {typed, func(o client.Object) { o.SetResourceVersion("") }, errOther},
		"another kind":                        {custom, func(o client.Object) { o.(*unstructured.Unstructured).SetKind("ClusterRoleBinding") }, errOther},
		"another version":                     {custom, func(o client.Object) { o.(*unstructured.Unstructured).SetAPIVersion("v1") }, errOther},
		"a typed object that states its kind": {typed, func(o client.Object) { o.(*corev1.Pod).Kind = "Secret" }, errOther},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := answersChecked{answering{change: tt.change}}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "a"}, tt.obj()); !errors.Is(err, tt.want) {
				t.Errorf("Get: %v, want %v", err, tt.want)
			}
			obj := tt.obj()
			obj.SetNamespace("team")
			obj.SetName("a")
			if err := c.Patch(t.Context(), obj, client.MergeFrom(&metav1.PartialObjectMetadata{})); !errors.Is(err, tt.want) {
				t.Errorf("Patch: %v, want %v", err, tt.want)
			}
		})
	}
}
