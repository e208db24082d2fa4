package conversion

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
)

// view turns the objects of one CRD into what the tenant knows of them, and back.
type view struct {
	namer naming.Namer
	kind  kinds.Kind
}

func viewOf(namer naming.Namer, crd *resources.CRD) view {
	isNamespaced := crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	return view{namer: namer, kind: kinds.Custom(crd.Spec.Group, crd.Spec.Names.Plural, crd.Spec.Names.Kind, isNamespaced)}
}

// up returns an object of the super cluster as the tenant knows it. It keeps the
// argument.
func (v view) up(super document.Object) (unstructured.Unstructured, error) {
	object := runtime.DeepCopyJSON(super)
	response := document.Response{Namer: v.namer, Kind: v.kind, Fields: v.kind.Fields(), Seal: func(string) string { return "" }}
	if err := response.Up(object); err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("convert an object of the super cluster: %w", err)
	}
	return unstructured.Unstructured{Object: object}, nil
}

// down returns what the tenant's webhook has made of an object of the super
// cluster. Of the metadata, it changes labels and annotations that are the
// tenant's.
func (v view) down(super document.Object, version string, converted unstructured.Unstructured) (document.Object, error) {
	changed := document.Object{metadata: document.Object{}}
	of := changed[metadata].(document.Object)
	before, _ := super[metadata].(document.Object)
	after, _ := converted.Object[metadata].(document.Object)
	for _, field := range labelled {
		if values, ok := after[field]; ok {
			of[field] = values
		}
	}
	if err := document.Down(v.namer, v.kind.Fields(), changed); err != nil {
		return nil, err
	}
	kept := document.Object{}
	for field, value := range before {
		kept[field] = runtime.DeepCopyJSONValue(value)
	}
	for _, field := range labelled {
		if kept[field] = withPlatforms(before[field], of[field]); kept[field] == nil {
			delete(kept, field)
		}
	}
	converted.Object["apiVersion"], converted.Object[metadata] = version, kept
	return converted.Object, nil
}

const metadata = "metadata"

// labelled are the metadata that a conversion may change.
var labelled = []string{"labels", "annotations"}

// withPlatforms adds the labels of the platform before a conversion to those after
// it.
func withPlatforms(before, after any) any {
	all, _ := after.(document.Object)
	was, _ := before.(document.Object)
	for key, value := range was {
		if document.LabelKey(key, false) != "" {
			continue
		}
		if all == nil {
			all = document.Object{}
		}
		all[key] = value
	}
	if all == nil {
		return nil
	}
	return all
}
