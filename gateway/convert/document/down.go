package document

import (
	"errors"
	"fmt"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// Down converts a document of the tenant, in place.
func Down(n naming.Namer, fields *kinds.Field, object Object) error {
	_, err := down{n}.walker().walk(object, fields)
	return err
}

// down converts values to those of the super cluster.
type down struct{ naming.Namer }

func (d down) walker() walker { return walker{turn: d.turn, strict: true} }

func (d down) turn(rule kinds.Rule, value any) (any, error) {
	switch rule.Means {
	case kinds.OwnNamespace, kinds.NamespaceName:
		return d.namespace(value)
	case kinds.NamespaceSelector:
		return d.selector(value)
	case kinds.OwnPodSelector:
		return d.podSelector(value)
	case kinds.Labels:
		return d.labels(value, plainKeys)
	case kinds.NamespaceLabels:
		return d.labels(value, namespaceKeys)
	case kinds.Owner:
		return d.owner(value, false)
	case kinds.RootOwner:
		return d.owner(value, true)
	case kinds.TypeVersion:
		return typeVersion(rule, value)
	case kinds.StoredName:
		return d.storedName(value)
	case kinds.RootNamespace:
		return absent, nil
	case kinds.Reference:
		return reference(value)
	case kinds.Audience:
		return d.audience(value)
	case kinds.FieldPath:
		return d.fieldPath(value)
	case kinds.APIVersion:
		return d.apiVersion(value)
	case kinds.CRDName:
		return d.crdName(value)
	case kinds.CRDGroup:
		return d.crdGroup(value)
	case kinds.ConversionClient:
		return hooked(value)
	case kinds.ManagedFields:
		return d.managers(rule, value)
	default:
		return value, d.permit(rule, value)
	}
}

// permit returns why a value that is the same on both sides is refused.
func (d down) permit(rule kinds.Rule, value any) error {
	switch rule.Means {
	case kinds.ManagedNamespaceFields, kinds.Text:
		return nil
	case kinds.VolumeName:
		return d.volume(value)
	case kinds.SecretType:
		return refuse(value == accountTokens, rule.Reason)
	case kinds.Hidden:
		return refuse(!isEmpty(value), rule.Reason)
	case kinds.Unserved:
		return refuse(value != false, rule.Reason)
	default:
		return fmt.Errorf("the gateway has no conversion of a field that holds %s", rule.Means)
	}
}

// accountTokens is the type of Secrets that a cluster fills with tokens.
const accountTokens = "kubernetes.io/service-account-token"

// isEmpty reports whether a value is a list without elements.
func isEmpty(value any) bool {
	list, ok := value.([]any)
	return ok && len(list) == 0
}

func refuse(refused bool, reason string) error {
	if refused {
		return errors.New(reason)
	}
	return nil
}

// namespace converts the name of a namespace; empty stays empty.
func (d down) namespace(value any) (any, error) {
	name, ok := value.(string)
	switch {
	case !ok:
		return nil, errShape
	case name == "":
		return name, nil
	}
	return d.Namespace(name)
}

// volume permits a claim to name the volume that was provisioned for it.
func (d down) volume(value any) error {
	name, ok := value.(string)
	if !ok {
		return errShape
	}
	return refuse(name != "" && !d.IsProvisionedVolume(name), "a claim cannot choose a PersistentVolume of the super cluster")
}
