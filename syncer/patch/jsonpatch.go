package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	kjson "sigs.k8s.io/json"
)

// maxCopied bounds the total size of the copy operations of a JSON Patch, in
// bytes. No Kubernetes object is larger.
const maxCopied = 3 << 20

// compileJSONPatch returns the step that applies a JSON Patch (RFC 6902).
func compileJSONPatch(source string) (func(context.Context, *draft) error, error) {
	operations, err := jsonpatch.DecodePatch([]byte(source))
	if err != nil {
		return nil, fmt.Errorf("not a JSON Patch: %w", err)
	}
	if len(operations) == 0 {
		return nil, errors.New("the patch has no operations")
	}
	for i, operation := range operations {
		if err := validate(operation); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return func(_ context.Context, d *draft) error {
		return applyJSONPatch(operations, d)
	}, nil
}

// validate rejects operations that the library accepts: those on the object as
// a whole, and a test without a value.
func validate(operation jsonpatch.Operation) error {
	path, err := operation.Path()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(path, "/") {
		return errors.New("path must begin with /")
	}
	switch operation.Kind() {
	case "move", "copy":
		if from, err := operation.From(); err != nil || !strings.HasPrefix(from, "/") {
			return errors.New("from must begin with /")
		}
	case "test":
		if _, err := operation.ValueInterface(); err != nil {
			return errors.New("value is missing")
		}
	}
	return nil
}

// applyJSONPatch applies the operations to a draft.
func applyJSONPatch(operations jsonpatch.Patch, d *draft) error {
	before, err := json.Marshal(d.content)
	if err != nil {
		return err
	}
	after, err := run(operations, before)
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(after, &content); err != nil {
		return err
	}
	d.content = content
	return nil
}

// run applies the operations to JSON. The library panics at some operations
// that do not match the object, such as a test of a list of objects against
// [null]; the panic must fail the patch and not the program.
func run(operations jsonpatch.Patch, before []byte) (after []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the operations cannot be applied to this object")
		}
	}()
	return operations.ApplyWithOptions(before, &jsonpatch.ApplyOptions{AccumulatedCopySizeLimit: maxCopied})
}
