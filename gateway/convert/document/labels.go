package document

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// keys are the keys of a kind of labels: how the tenant's are called in the
// super cluster, and back. A key is empty if the other side has none.
type keys struct {
	super  func(string) string
	tenant func(string) string
	// named is the key whose value is the name of a namespace; empty if there is
	// none.
	named string
}

// plainKeys are the keys of labels and annotations: those of the platform are
// not the tenant's.
var plainKeys = keys{super: unreserved, tenant: unreserved}

// namespaceKeys are those of the labels of a Namespace: those of Pod Security
// mean something to the super cluster, so that the tenant's are renamed.
var namespaceKeys = keys{
	named: corev1.LabelMetadataName,
	super: func(key string) string {
		if strings.HasPrefix(key, podSecurity) {
			return names.Label(key)
		}
		return unreserved(key)
	},
	tenant: func(key string) string {
		if strings.HasPrefix(key, podSecurity) {
			return ""
		}
		tenant, known := names.TenantLabel(key)
		if known && tenant != key && strings.HasPrefix(tenant, podSecurity) {
			return tenant
		}
		return unreserved(key)
	},
}

// podSecurity begins the labels by which a cluster enforces Pod Security.
const podSecurity = "pod-security.kubernetes.io/"

// LabelKey returns the key in the super cluster of a label of a tenant's object,
// or of a Namespace; empty if it is one of the platform.
func LabelKey(key string, ofNamespace bool) string {
	if ofNamespace {
		return namespaceKeys.super(key)
	}
	return plainKeys.super(key)
}

func unreserved(key string) string {
	if names.Reserved(key) {
		return ""
	}
	return key
}

// labels converts labels or annotations. Values of directives pass.
func (d down) labels(value any, keys keys) (any, error) {
	labels, ok := value.(Object)
	if !ok {
		return nil, errShape
	}
	converted := make(Object, len(labels))
	for key, value := range labels {
		super := keys.super(key)
		if super == "" {
			return nil, at(key, errReserved)
		}
		value, err := d.labelValue(keys, key, value)
		if err != nil {
			return nil, at(key, err)
		}
		converted[super] = value
	}
	return converted, nil
}

// errReserved is a label or annotation of the platform.
var errReserved = fmt.Errorf("labels and annotations of %s are the platform's", names.Domain)

// labelValue converts the value of a label that is the name of a namespace.
func (d down) labelValue(keys keys, key string, value any) (any, error) {
	if key != keys.named || value == nil {
		return value, nil
	}
	return d.namespace(value)
}

// labels converts labels or annotations, without those of the platform.
func (u up) labels(value any, keys keys) any {
	labels, ok := value.(Object)
	if !ok {
		return value
	}
	converted := make(Object, len(labels))
	for key, value := range labels {
		tenant := keys.tenant(key)
		if tenant == "" {
			continue
		}
		if key == keys.named {
			value = u.referred(value)
		}
		converted[tenant] = value
	}
	if len(converted) == 0 && len(labels) > 0 {
		return absent
	}
	return converted
}
