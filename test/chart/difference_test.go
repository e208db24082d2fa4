package chart

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// difference describes how two objects differ.
func difference(want, got *unstructured.Unstructured) string {
	return cmp.Diff(want.Object, got.Object)
}
