package names

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// labelDomain is the domain of the labels that copies have in the place of a tenant's.
const labelDomain = "labels." + Domain

// maxKeyName is the longest name in a label's key, behind the domain.
const maxKeyName = validation.LabelValueMaxLength

// Label returns the key under which a copy has a label whose own key could mean
// something to the super cluster. The domain and the slash become the beginning
// of a name in the project's domain: example.com/tier is
// labels.tenancy.x-k8s.io/example.com_tier. Different keys stay different: a
// domain has no underscore, and a name that is too long, or that has an
// underscore where none may be, ends in a hash and is exactly as long as a name
// may be, which no other is.
func Label(key string) string {
	domain, name, qualified := strings.Cut(key, "/")
	whole := key
	if qualified {
		whole = domain + "_" + name
	}
	if len(whole) < maxKeyName && qualified == strings.Contains(whole, "_") {
		return labelDomain + "/" + whole
	}
	head := strings.TrimRight(whole[:min(len(whole), maxKeyName-hashDigits-1)], "-_.")
	return labelDomain + "/" + head + "-" + digest(maxKeyName-len(head)-1, key)
}

// TenantLabel undoes Label for a label of a copy, and keeps other keys. It
// reports false for a hashed key, which cannot be reversed.
func TenantLabel(key string) (tenant string, known bool) {
	whole, translated := strings.CutPrefix(key, labelDomain+"/")
	if !translated {
		return key, true
	}
	domain, name, qualified := strings.Cut(whole, "_")
	switch {
	case len(whole) == maxKeyName:
		return "", false
	case qualified:
		return domain + "/" + name, true
	}
	return whole, true
}

// Reserved reports whether the key of a label or annotation is in one of the
// project's domains.
func Reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == Domain || strings.HasSuffix(domain, "."+Domain)
}
