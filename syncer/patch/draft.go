package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// draft is an object that is being patched.
type draft struct {
	// object is the object to patch. It is not changed here.
	object client.Object
	// content is the object in JSON form, which patches change. It shares no
	// memory with the object.
	content map[string]any
	// was holds the fields that no patch may change.
	was protected
	// inputs are the variables of expressions.
	inputs map[string]any
	budget expression.Budget
}

// newDraft returns the draft of an object.
func newDraft(object, self client.Object, tenant translate.Tenant) (*draft, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	if _, shared := object.(runtime.Unstructured); shared {
		content = runtime.DeepCopyJSON(content)
	}
	return &draft{
		object:  object,
		content: content,
		was:     protect(content),
		inputs: map[string]any{
			"self":   lazy(self),
			"tenant": map[string]string{"name": tenant.Name, "namespace": tenant.Namespace, "key": tenant.Key},
		},
	}, nil
}

// lazy converts an object when an expression reads it, which few do. The result
// is read-only.
func lazy(object client.Object) func() any {
	return sync.OnceValue(func() any {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return types.WrapErr(err)
		}
		return content
	})
}

// variables returns the variables of an expression, with the object in its
// current form.
func (d *draft) variables() map[string]any {
	d.inputs["object"] = d.content
	return d.inputs
}

// result returns an object with the draft's content, with its protected fields
// restored.
func (d *draft) result() (client.Object, error) {
	if err := d.was.restore(d.content); err != nil {
		return nil, err
	}
	if _, untyped := d.object.(runtime.Unstructured); untyped {
		return &unstructured.Unstructured{Object: d.content}, d.was.checkMetadata(d.content)
	}
	typed, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(d.object).Elem()))
	if !ok {
		return nil, fmt.Errorf("%T is no object", d.object)
	}
	return typed, decode(d.content, typed)
}

// overwrite replaces the content of an object by that of another object of its
// type.
func overwrite(object, result client.Object) {
	if untyped, ok := object.(runtime.Unstructured); ok {
		untyped.SetUnstructuredContent(result.(runtime.Unstructured).UnstructuredContent())
		return
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(result).Elem())
}

// decode fills an object with content that must fit its type. It uses JSON
// because the converter truncates numbers that are too large, and does not name
// the field whose type is wrong.
func decode(content map[string]any, into any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	unfit, err := kjson.UnmarshalStrict(data, into, kjson.DisallowUnknownFields)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("a JSON %s does not fit %s", mismatch.Value, mismatch.Field)
	}
	if err != nil || len(unfit) == 0 {
		return err
	}
	return unfit[0]
}
