package sharedcrds

import (
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type (
	crd     = apiextensionsv1.CustomResourceDefinition
	spec    = apiextensionsv1.CustomResourceDefinitionSpec
	version = apiextensionsv1.CustomResourceDefinitionVersion
	schema  = apiextensionsv1.JSONSchemaProps
)

// maxVersions is the maximum number of versions of a CRD of a tenant, to bound
// what an apiserver that is not trusted can make the syncer do.
const maxVersions = 50

// checkSwap returns an error if the CRD of a tenant cannot become the super
// cluster's in place.
func checkSwap(tenant, system *crd) error {
	switch {
	case converts(&tenant.Spec):
		return errors.New("it has a conversion webhook")
	case tenant.Spec.PreserveUnknownFields:
		return errors.New("its spec.preserveUnknownFields is true, which cannot be restored")
	case len(tenant.Spec.Versions) > maxVersions:
		return fmt.Errorf("it has more than %d versions", maxVersions)
	case gated(&tenant.Spec):
		return errGated
	case len(storageOf(&tenant.Spec)) != 1:
		return errors.New("it does not store objects in exactly one version")
	}
	return checkCopy(tenant, system)
}

// checkCopy returns an error if a copy cannot follow the super cluster's CRD.
func checkCopy(tenant, system *crd) error {
	switch {
	case tenant.Spec.Group != system.Spec.Group || tenant.Spec.Names.Plural != system.Spec.Names.Plural:
		return errors.New("it is of another group or resource")
	case tenant.Spec.Scope != system.Spec.Scope:
		return fmt.Errorf("its scope is not %s", system.Spec.Scope)
	case tenant.Spec.Names.Kind != system.Spec.Names.Kind:
		return fmt.Errorf("its kind is not %s", system.Spec.Names.Kind)
	case gated(&system.Spec):
		return errGated
	case len(tenant.Status.StoredVersions) > maxVersions:
		return fmt.Errorf("it has stored more than %d versions", maxVersions)
	case converts(&system.Spec) && len(without(tenant.Status.StoredVersions, storageOf(&system.Spec))) > 0:
		return errors.New("the shared CRD has a conversion webhook, which tenants cannot call, " +
			"and the tenant has objects in other versions than it stores")
	}
	return nil
}

// converts reports whether a CRD has a conversion webhook.
func converts(s *spec) bool {
	return s.Conversion != nil && s.Conversion.Strategy != apiextensionsv1.NoneConverter
}

// storageOf returns the names of the version that a CRD stores.
func storageOf(s *spec) []string {
	return versionNames(slices.DeleteFunc(slices.Clone(s.Versions), func(v version) bool { return !v.Storage }))
}

func versionNames(versions []version) []string {
	all := make([]string, 0, len(versions))
	for _, v := range versions {
		all = append(all, v.Name)
	}
	return all
}

// without returns the elements of all that are not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// copySpec returns the spec of a tenant's copy of the super cluster's CRD. Of a
// CRD with a conversion webhook, which tenants cannot call, only the stored
// version is left.
func copySpec(system *spec) *spec {
	s := system.DeepCopy()
	if converts(s) {
		s.Versions = slices.DeleteFunc(s.Versions, func(v version) bool { return !v.Storage })
		s.Versions[0].Served = true
	}
	s.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	s.PreserveUnknownFields = false
	return s
}

// keepStored adds the versions in which objects may be stored, and that the
// spec does not have: not served, and with all fields.
func keepStored(s *spec, stored []string) *spec {
	for _, name := range without(stored, versionNames(s.Versions)) {
		s.Versions = append(s.Versions, version{Name: name, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything()}})
	}
	return s
}

// storeIn makes a spec store objects in a version. A version that the spec does
// not have is added: not served, and with the schema of the one that it stored.
func storeIn(s *spec, name string) *spec {
	was := slices.IndexFunc(s.Versions, func(v version) bool { return v.Storage })
	s.Versions[was].Storage = false
	now := slices.IndexFunc(s.Versions, func(v version) bool { return v.Name == name })
	if now < 0 {
		added := *s.Versions[was].DeepCopy()
		added.Name, added.Served = name, false
		s.Versions, now = append(s.Versions, added), len(s.Versions)
	}
	s.Versions[now].Storage = true
	return s
}

// replacementSpec returns the spec of a copy that replaces the tenant's own CRD.
// Objects are stored in the version of that all the time, so that each apiserver
// of the tenant can read what another stores, however late it learns of a change.
func replacementSpec(system *spec, storage string, stored []string) *spec {
	return preserveAll(keepStored(storeIn(copySpec(system), storage), stored))
}

// anything returns the schema of every object.
func anything() *schema { return &schema{Type: "object", XPreserveUnknownFields: new(true)} }

// preserveAll makes all versions keep the fields that their schemas do not
// know, at every level, so that a write under them loses nothing.
func preserveAll(s *spec) *spec {
	for i := range s.Versions {
		if v := &s.Versions[i]; v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			root := v.Schema.OpenAPIV3Schema
			// A schema may say nothing of metadata except the name.
			metadata, named := root.Properties["metadata"]
			preserve(root)
			root.Nullable = false
			if named {
				root.Properties["metadata"] = metadata
			}
		}
	}
	return s
}

// preserve makes a schema keep unknown fields and nulls. Fields of embedded
// resources would be dropped from their metadata, so these become ordinary
// objects.
func preserve(s *schema) {
	s.XEmbeddedResource = false
	s.Nullable = true
	if s.Type == "object" && s.AdditionalProperties == nil {
		s.XPreserveUnknownFields = new(true)
	}
	for name, property := range s.Properties {
		preserve(&property)
		s.Properties[name] = property
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		preserve(s.AdditionalProperties.Schema)
	}
	if s.Items != nil && s.Items.Schema != nil {
		preserve(s.Items.Schema)
		keepKeys(s)
	}
}

// keepKeys makes what identifies the items of a list not nullable, as an
// apiserver demands of lists that are sets or maps.
func keepKeys(list *schema) {
	if list.XListType == nil || *list.XListType == "atomic" {
		return
	}
	item := list.Items.Schema
	item.Nullable = false
	for _, key := range list.XListMapKeys {
		property := item.Properties[key]
		property.Nullable = false
		item.Properties[key] = property
	}
}

// Gates are versions that only a closed or reopened spec has, so an apiserver
// that serves one of them knows that spec. No object is ever stored in them.
const (
	closedGate   = "vc-closed"
	reopenedGate = "vc-reopened"
)

// errGated is why a CRD with a version of such a name is not shared.
var errGated = fmt.Errorf("the names of versions %s and %s are reserved", closedGate, reopenedGate)

// gated reports whether a spec of others has a version with the name of a gate.
func gated(s *spec) bool {
	return slices.ContainsFunc(s.Versions, func(v version) bool { return v.Name == closedGate || v.Name == reopenedGate })
}

// withGate adds a gate to a spec.
func withGate(s *spec, gate string) *spec {
	s = withoutGate(s, gate)
	s.Versions = append(s.Versions, version{
		Name: gate, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything()},
	})
	return s
}

// withoutGate drops a gate from a spec.
func withoutGate(s *spec, gate string) *spec {
	s.Versions = slices.DeleteFunc(s.Versions, func(v version) bool { return v.Name == gate })
	return s
}

// reopenedSpec returns the spec by which the tenant's own versions are served
// again, with the versions in which objects may be stored. All fields are kept.
func reopenedSpec(own *spec, stored []string) *spec {
	return preserveAll(keepStored(withGate(own.DeepCopy(), reopenedGate), stored))
}

// closedSpec returns the spec of a copy that is about to be recalled: its
// objects can be read, and none can be created.
func closedSpec(tenant *spec) *spec {
	s := withGate(tenant.DeepCopy(), closedGate)
	for i := range s.Versions {
		closed := anything()
		closed.XValidations = apiextensionsv1.ValidationRules{{Rule: "false", Message: "this CustomResourceDefinition is being recalled"}}
		s.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: closed}
		s.Versions[i].SelectableFields, s.Versions[i].AdditionalPrinterColumns = nil, nil
		s.Versions[i].Subresources = withoutScale(s.Versions[i].Subresources)
	}
	return s
}

// withoutScale drops the subresource whose paths a schema must have.
func withoutScale(s *apiextensionsv1.CustomResourceSubresources) *apiextensionsv1.CustomResourceSubresources {
	if s != nil {
		s.Scale = nil
	}
	return s
}

// unservedSpec returns the spec of a recalled copy with objects: nothing is
// served, and everything is kept.
func unservedSpec(tenant *spec) *spec {
	s := withoutGate(closedSpec(tenant), closedGate)
	for i := range s.Versions {
		s.Versions[i].Schema.OpenAPIV3Schema = anything()
		s.Versions[i].Served = false
	}
	return s
}
