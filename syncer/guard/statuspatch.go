package guard

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// StatusPatch changes the status of an object, and only applies to that very
// object. It does not compare the rest of the two states, which is most of a
// pod.
type StatusPatch struct {
	// Was is the state to patch.
	Was client.Object
}

// Type returns the type of the patch.
func (p StatusPatch) Type() types.PatchType { return patchByKeys(p.Was).Type() }

// Data returns the patch.
func (p StatusPatch) Data(now client.Object) ([]byte, error) {
	before, err := statusOf(p.Was)
	if err != nil {
		return nil, err
	}
	after, err := statusOf(now)
	if err != nil {
		return nil, err
	}
	// A field of only the second state is part of the patch.
	after.SetUID(p.Was.GetUID())
	return patchByKeys(before).Data(after)
}

// statusOf returns an object with only the status of another, whose memory it
// shares.
func statusOf(obj client.Object) (client.Object, error) {
	if custom, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": custom.GetAPIVersion(), "kind": custom.GetKind(), "status": custom.Object["status"],
		}}, nil
	}
	from := reflect.ValueOf(obj).Elem()
	bare := reflect.New(from.Type())
	status := bare.Elem().FieldByName("Status")
	if !status.IsValid() {
		return nil, fmt.Errorf("a %T has no status", obj)
	}
	status.Set(from.FieldByName("Status"))
	return bare.Interface().(client.Object), nil
}

// SameStatus reports whether the status of two states of an object is
// semantically equal.
func SameStatus(a, b client.Object) bool {
	first, err := statusOf(a)
	if err != nil {
		return false
	}
	second, err := statusOf(b)
	return err == nil && wire.Equal(first, second)
}
