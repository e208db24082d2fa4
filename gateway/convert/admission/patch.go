package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	mergepatch "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/gateway/convert/compiled"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// limitCopies limits what JSON patches of webhooks and policies copy. Upstream's engine
// leaves that to a setting of its library, which an apiserver makes for its whole
// process.
func limitCopies() { atomic.StoreInt64(&jsonpatchv4.AccumulatedCopySizeLimit, document.MaxBytes) }

// errIdentity is a webhook or policy that makes another object of one.
var errIdentity = errors.New("webhooks and policies cannot change the type, the name or the namespace of an object")

const metadata = "metadata"

// patchOf returns the patch in the super cluster of what the tenant's webhooks
// and policies have changed; nil for nothing. The super cluster's object keeps
// all that they do not see: of both of the tenant's objects, it gets only the
// difference.
func patchOf(t target, super []byte, before, after document.Object) ([]byte, error) {
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {metadata, "name"}, {metadata, "namespace"}, {metadata, "generateName"}, {metadata, "uid"},
	} {
		if at(before, path) != at(after, path) {
			return nil, errIdentity
		}
	}
	if err := setConversionAside(t, before, after); err != nil {
		return nil, err
	}
	if err := compiled.Check(t.kind, after); err != nil && compiled.Check(t.kind, before) == nil {
		return nil, err
	}
	from, err := down(t, before)
	if err != nil {
		return nil, err
	}
	to, err := down(t, after)
	if err != nil {
		return nil, err
	}
	if depth := nesting.Depth(to); depth > document.MaxDepth && depth > nesting.Depth(from) {
		return nil, document.ErrTooDeep
	}
	difference, err := mergepatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare an object with its mutation: %w", err)
	}
	mutated, err := mergepatch.MergePatch(super, difference)
	if err != nil {
		return nil, fmt.Errorf("mutate an object: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(super, mutated)
	if err != nil || len(operations) == 0 {
		return nil, err
	}
	return json.Marshal(operations)
}

// errConversion is a webhook or policy that makes another webhook convert.
var errConversion = errors.New("webhooks and policies cannot change spec.conversion.webhook.clientConfig of a CRD")

// setConversionAside removes the configuration of the conversion webhook from both
// objects of a CRD: that of the super cluster leads to the gateway.
func setConversionAside(t target, before, after document.Object) error {
	if !t.kind.IsCRD() {
		return nil
	}
	path := []string{"spec", "conversion", "webhook", "clientConfig"}
	if !equality.Semantic.DeepEqual(at(before, path), at(after, path)) {
		return errConversion
	}
	for _, object := range []document.Object{before, after} {
		unstructured.RemoveNestedField(object, path...)
	}
	return nil
}

// at returns a field of an object; nil if it is empty or of another type.
func at(object document.Object, path []string) any {
	var value any = object
	for _, step := range path {
		fields, _ := value.(document.Object)
		value = fields[step]
	}
	if value == "" {
		return nil
	}
	return value
}

// down returns an object of the tenant as one of the super cluster.
func down(t target, object document.Object) ([]byte, error) {
	copied := runtime.DeepCopyJSON(object)
	if t.kind.IsStored() {
		document.DropNulls(copied)
	}
	if err := document.Down(t.namer, t.kind.FieldsOf(t.subresource), copied); err != nil {
		return nil, err
	}
	// A difference that removes all labels would remove those of the platform.
	if err := document.Stamp(copied, nil, nil); err != nil {
		return nil, err
	}
	return document.Write(copied)
}
