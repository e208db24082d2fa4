package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/virtualvolume"
)

// offeredObject returns an object of the super cluster that the platform offers to
// all tenants, or false if there is none with the name.
func (c *call) offeredObject(ctx context.Context, name string) (document.Object, bool, error) {
	if len(content.IsPathSegmentName(name)) > 0 {
		return nil, false, nil // it would lead to another path
	}
	object := document.Object{}
	code, err := c.send(ctx, c.Super, http.MethodGet, c.offeredPath()+"/"+name, nil, &object)
	switch {
	case err != nil:
		return nil, false, err
	case code == http.StatusNotFound:
		return nil, false, nil
	case code != http.StatusOK:
		return nil, false, c.errOfferedRead(code)
	}
	if offers, err := c.isOffered(object); err != nil || !offers {
		return nil, false, err
	}
	return object, true, c.convertOffered(object)
}

// isOffered reports whether the tenant reads an object of the super cluster: a class
// that the platform offers to all, or a volume that is bound to its claim.
func (c *call) isOffered(object document.Object) (bool, error) {
	if !c.kind.IsVolume() {
		return (&unstructured.Unstructured{Object: object}).GetLabels()[names.Public] == "true", nil
	}
	volume, err := volumeOf(object)
	if err != nil {
		return false, err
	}
	_, own := c.Namespaces.TenantName(c.Tenant, virtualvolume.ClaimNamespace(volume))
	return own, nil
}

func volumeOf(object document.Object) (*corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, volume); err != nil {
		return nil, fmt.Errorf("read a volume: %w", err)
	}
	return volume, nil
}

// allOffered returns the objects of the super cluster with labels that the platform
// offers to all tenants.
func (c *call) allOffered(ctx context.Context, selected labels.Selector) ([]document.Object, error) {
	list := struct{ Items []document.Object }{}
	target := c.urlOf(c.offeredPath())
	query := url.Values{resourceVersion: {"0"}}
	if !c.kind.IsVolume() {
		query.Set(labelSelector, names.Public+"=true")
	}
	target.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil) //nolint:gosec // of the super cluster
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", jsonType)
	code, err := exchange(c.Super, r, &list)
	if err != nil || code != http.StatusOK {
		return nil, c.errOfferedRead(code)
	}
	var offered []document.Object
	for _, object := range list.Items {
		offers, err := c.isOffered(object)
		if err != nil {
			return nil, err
		}
		if !offers {
			continue
		}
		object["apiVersion"], object["kind"] = c.version().String(), c.kind.Kind
		if err := c.convertOffered(object); err != nil {
			return nil, err
		}
		if selected.Matches(labels.Set((&unstructured.Unstructured{Object: object}).GetLabels())) {
			offered = append(offered, object)
		}
	}
	return offered, nil
}

func (c *call) offeredPath() string {
	return c.pathOf(c.version(), "", "", "")
}

func (c *call) errOfferedRead(code int) error {
	return fmt.Errorf("read the %s that the platform offers: the super cluster responded %d", c.info.Resource, code)
}

// lastApplied is an annotation with all that kubectl has applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// convertOffered removes what is the platform's from an object.
func (c *call) convertOffered(object document.Object) error {
	if c.kind.IsVolume() {
		if err := maskVolume(object); err != nil {
			return err
		}
	}
	metadata, _ := object["metadata"].(document.Object)
	for _, field := range []string{"managedFields", "ownerReferences", "finalizers"} {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"].(document.Object); ok {
		delete(annotations, lastApplied)
	}
	converter := c.converter(nil)
	converter.Many = false // it is one of a list
	return converter.Up(object)
}

// maskVolume leaves what tenants see of a volume.
func maskVolume(object document.Object) error {
	super, err := volumeOf(object)
	if err != nil {
		return err
	}
	volume, claim := virtualvolume.Of(super), super.Spec.ClaimRef
	volume.TypeMeta, volume.UID, volume.ResourceVersion = super.TypeMeta, super.UID, super.ResourceVersion
	volume.CreationTimestamp, volume.DeletionTimestamp = super.CreationTimestamp, super.DeletionTimestamp
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: claim.APIVersion, Kind: claim.Kind, Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
	masked, err := runtime.DefaultUnstructuredConverter.ToUnstructured(volume)
	if err != nil {
		return fmt.Errorf("write a volume: %w", err)
	}
	clear(object)
	maps.Copy(object, masked)
	return nil
}

// confirmName returns an error if the platform offers an object of the name.
func (c *call) confirmName(ctx context.Context, name string) error {
	if !c.kind.Offered {
		return nil
	}
	_, exists, err := c.offeredObject(ctx, name)
	if err == nil && exists {
		err = apierrors.NewAlreadyExists(c.kind.GroupResource(), name)
	}
	return err
}

// confirmFields returns an error if a field changes that cannot.
func (c *call) confirmFields(before, after document.Object) error {
	if c.info.Subresource != "" {
		return nil // the super cluster ignores the others
	}
	var wrong field.ErrorList
	for _, path := range c.kind.Immutable {
		steps := strings.Split(path, ".")
		was, is := c.fieldOf(before, steps), c.fieldOf(after, steps)
		if !sameJSON(was, is) {
			wrong = append(wrong, field.Invalid(field.NewPath(steps[0], steps[1:]...), is, "field is immutable"))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}, c.name, wrong)
}

// fieldOf returns a field of an object, or its default.
func (c *call) fieldOf(object document.Object, steps []string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, steps...)
	if initial, ok := c.kind.Defaults[strings.Join(steps, ".")]; ok && value == nil {
		return initial
	}
	return value
}

// sameJSON reports whether two values are the same in JSON: numbers have several
// types, and what is empty may be absent.
func sameJSON(a, b any) bool {
	first, errOfFirst := json.Marshal(a)
	second, errOfSecond := json.Marshal(b)
	return errOfFirst == nil && errOfSecond == nil && string(first) == string(second) || equality.Semantic.DeepEqual(a, b)
}
