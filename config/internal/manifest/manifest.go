// Package manifest reads the manifests that are embedded in programs.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Read returns the objects of files, in their order.
func Read(in fs.FS, files ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := fs.ReadFile(in, file)
		if err != nil {
			return nil, fmt.Errorf("read the embedded file %s: %w", file, err)
		}
		found, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("read the embedded file %s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// parse returns the objects of a file.
func parse(data []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(data))
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
