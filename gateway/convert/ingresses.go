package convert

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// confirmClass returns an error if an Ingress that may be created does not name a
// class that the platform offers. Without one, the super cluster would choose its
// default class, offered or not. A class does not change afterwards.
func (c *call) confirmClass(ctx context.Context, object document.Object) error {
	if !c.kind.IsIngress() || c.info.Subresource != "" || c.info.Verb != verbCreate && !c.applies {
		return nil
	}
	class, _, err := unstructured.NestedString(object, "spec", "ingressClassName")
	if err != nil {
		return badRequest(err)
	}
	if class != "" {
		offered, err := c.offersClass(ctx, class)
		if err != nil || offered {
			return err
		}
	}
	kind := schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}
	return apierrors.NewInvalid(kind, nameOf(object), field.ErrorList{field.Invalid(field.NewPath("spec", "ingressClassName"), class,
		"the platform does not offer the class: choose one of kubectl get ingressclasses")})
}

// offersClass reports whether the platform offers a class of Ingresses.
func (c *call) offersClass(ctx context.Context, name string) (bool, error) {
	classes, info := *c, *c.info
	classes.kind, classes.info, classes.name = kinds.IngressClasses(), &info, name
	info.Resource, info.Name, info.Namespace = classes.kind.Resource, name, ""
	_, offered, err := classes.offeredObject(ctx, name)
	if err != nil {
		return false, fmt.Errorf("read the class of an Ingress: %w", err)
	}
	return offered, nil
}
