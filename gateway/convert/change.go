package convert

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// change is what a request makes of an object that the gateway reads.
type change struct {
	// of returns the changed object. It does not change its argument.
	of func(before document.Object) (document.Object, error)
	// applied is the configuration of a server-side apply, for which of is nil.
	applied document.Object
	// named is the version that the request names; empty for none.
	named string
}

func (c change) isConditional() bool { return c.named != "" }

// changeOf returns the change of an update or a patch.
func (c *call) changeOf(w http.ResponseWriter, r *http.Request) (change, error) {
	mediaType, data, err := readBody(w, r)
	if err != nil {
		return change{}, err
	}
	if c.info.Verb == verbUpdate {
		object, err := c.parseNamed(mediaType, data)
		if err != nil {
			return change{}, err
		}
		c.setType(object)
		return change{of: func(document.Object) (document.Object, error) { return copyOf(object), nil }, named: versionOf(object)}, nil
	}
	switch types.PatchType(mediaType) {
	case types.ApplyYAMLPatchType:
		object, err := c.parseNamed(runtime.ContentTypeYAML, data)
		return change{applied: object, named: versionOf(object)}, err
	case types.JSONPatchType:
		return jsonPatch(data)
	case types.MergePatchType:
		return c.mergePatch(data, jsonpatch.MergePatch)
	case types.StrategicMergePatchType:
		return c.mergePatch(data, c.strategicPatch)
	case types.ApplyCBORPatchType:
	}
	return change{}, unsupported(mediaType)
}

// parseNamed parses a document, which has the name in the path.
func (c *call) parseNamed(mediaType string, data []byte) (document.Object, error) {
	object, err := c.parse(mediaType, data)
	if err != nil {
		return nil, err
	}
	if name := nameOf(object); name != c.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.name))
	}
	return object, nil
}

func jsonPatch(data []byte) (change, error) {
	if err := document.CheckValue(data); err != nil {
		return change{}, badRequest(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return change{}, badRequest(err)
	}
	if len(patch) > maxOperations {
		message := fmt.Sprintf("the allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(patch))
		return change{}, apierrors.NewRequestEntityTooLargeError(message)
	}
	return change{of: func(before document.Object) (document.Object, error) {
		return patched(before, func(data []byte) ([]byte, error) { return patch.ApplyWithOptions(data, patchOptions()) })
	}}, nil
}

// patchOptions bound what a patch can copy.
func patchOptions() *jsonpatch.ApplyOptions {
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = document.MaxBytes
	return options
}

// maxOperations is the limit of upstream's apiserver.
const maxOperations = 10000

// mergePatch returns the change of a patch that is merged.
func (c *call) mergePatch(data []byte, merge func(before, patch []byte) ([]byte, error)) (change, error) {
	object, err := c.parse(jsonType, data)
	if err != nil {
		return change{}, err
	}
	return change{named: versionOf(object), of: func(before document.Object) (document.Object, error) {
		return patched(before, func(before []byte) ([]byte, error) { return merge(before, data) })
	}}, nil
}

// strategicPatch merges by the type of the kind.
func (c *call) strategicPatch(before, patch []byte) ([]byte, error) {
	object, err := typed.New(schema.GroupVersionKind{Group: c.info.APIGroup, Version: c.info.APIVersion, Kind: c.kind.Kind})
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(before, patch, object)
}

// patched returns an object that a patch makes of another.
func patched(before document.Object, patch func([]byte) ([]byte, error)) (document.Object, error) {
	data, err := document.Write(before)
	if err != nil {
		return nil, err
	}
	if data, err = patch(data); err != nil {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error(),
		}}
	}
	object, err := document.Parse(data)
	if err != nil {
		return nil, badRequest(err)
	}
	return object, nil
}

func copyOf(object document.Object) document.Object { return runtime.DeepCopyJSON(object) }

func versionOf(object document.Object) string {
	metadata, _ := object["metadata"].(document.Object)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

func setVersion(object document.Object, version string) {
	if metadata, ok := object["metadata"].(document.Object); ok {
		metadata["resourceVersion"] = version
	}
}

// statusError returns a Status as an error.
func statusError(object document.Object) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	failed := &apierrors.StatusError{}
	if err := json.Unmarshal(data, &failed.ErrStatus); err != nil {
		return err
	}
	return failed
}
