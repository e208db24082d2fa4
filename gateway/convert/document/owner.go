package document

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// owner converts an owner reference of an object, which is in the root namespace
// or not. One to an object that is not the tenant's could block the deletion of
// that object, and one across namespaces deletes the object.
func (d down) owner(value any, inRoot bool) (any, error) {
	owner, ok := value.(Object)
	if !ok {
		return nil, errShape
	}
	version, _ := owner["apiVersion"].(string)
	super, err := d.apiVersion(version)
	if err != nil {
		return nil, err
	}
	kind, served := ownerKind(owner)
	switch {
	case onlyIdentifies(owner):
		return owner, nil
	case super != version: // a custom resource of the tenant
		owner["apiVersion"] = super
		return owner, nil
	case !served:
		return nil, fmt.Errorf("an owner of the kind %v is not served to this tenant", owner["kind"])
	case kind.IsNamespace():
		name, err := d.namespace(owner["name"])
		if err != nil {
			return nil, err
		}
		owner["name"] = name
	case kind.Stored.InRoot != inRoot:
		return nil, fmt.Errorf("an owner of the kind %s is not in the same namespace", kind.Kind)
	case kind.IsStored():
		name, err := d.storedName(owner["name"])
		if err != nil {
			return nil, err
		}
		owner["apiVersion"], owner["name"] = kind.StoredAs("").String(), name
	}
	return owner, nil
}

// onlyIdentifies reports whether an element of a patch names no kind: it only
// identifies an owner that the object has, by its UID.
func onlyIdentifies(owner Object) bool {
	for key := range owner {
		if key != "uid" && key != "$patch" {
			return false
		}
	}
	return true
}

// ownerKind returns the kind of an owner, or false if it is not served.
func ownerKind(owner Object) (kinds.Kind, bool) {
	version, _ := owner["apiVersion"].(string)
	name, _ := owner["kind"].(string)
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		return kinds.Kind{}, false
	}
	kind, ok := kinds.FindKind(parsed.Group, name)
	return kind, ok && kind.Served() && kind.Class != kinds.Answered && kind.Class != kinds.Shown
}

// convertsOwner reports whether owner changes a reference to an object of a type.
func (u up) convertsOwner(version, kind string) bool {
	owner := Object{apiVersion: version, "kind": kind}
	_, stored := storedKind(owner)
	known, served := ownerKind(owner)
	return stored || served && known.IsNamespace() || u.apiVersion(version) != version
}

// owner undoes the conversion of an owner reference.
func (u up) owner(value any) any {
	owner, ok := value.(Object)
	if !ok {
		return value
	}
	if kind, stored := storedKind(owner); stored {
		owner["apiVersion"] = schema.GroupVersion{Group: kind.Group, Version: kind.Stored.Version}.String()
		owner["name"] = unshelved(owner["name"])
	} else if kind, served := ownerKind(owner); served && kind.IsNamespace() {
		owner["name"] = u.referred(owner["name"])
	}
	if version, ok := owner["apiVersion"]; ok {
		owner["apiVersion"] = u.apiVersion(version)
	}
	return value
}

// storedKind returns the kind of an owner that the super cluster has as another
// type, or false if it is none.
func storedKind(owner Object) (kinds.Kind, bool) {
	version, _ := owner["apiVersion"].(string)
	name, _ := owner["kind"].(string)
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		return kinds.Kind{}, false
	}
	return kinds.FindStored(parsed, name)
}
