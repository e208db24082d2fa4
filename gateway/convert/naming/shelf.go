package naming

import (
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// encodedName begins the names in the super cluster of shelved objects whose
// names a custom resource cannot have, such as system:node. The rest is the name
// in base 32.
const encodedName = "x--"

var (
	encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
	encoded  = regexp.MustCompile(`\b` + encodedName + `[0-9a-v]+`)
)

// Shelved returns the name in the super cluster of a shelved object. It does not
// depend on the tenant: the namespace does.
func Shelved(name string) (string, error) {
	if name == "" || isPlain(name) {
		return name, nil
	}
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, ", "))
	}
	stored := encodedName + encoding.EncodeToString([]byte(name))
	if len(stored) > validation.DNS1123SubdomainMaxLength {
		return "", fmt.Errorf("must be no more than %d bytes", longestEncoded)
	}
	return stored, nil
}

// longestEncoded is how long a name may be that is encoded.
var longestEncoded = encoding.DecodedLen(validation.DNS1123SubdomainMaxLength - len(encodedName))

// isPlain reports whether an object is stored under its own name.
func isPlain(name string) bool {
	return !strings.HasPrefix(name, encodedName) && len(validation.IsDNS1123Subdomain(name)) == 0
}

// Unshelved undoes Shelved.
func Unshelved(stored string) string {
	text, found := strings.CutPrefix(stored, encodedName)
	if !found {
		return stored
	}
	name, err := encoding.DecodeString(text)
	if err != nil {
		return stored
	}
	return string(name)
}

// UnshelvedText undoes Shelved for all names in a text.
func UnshelvedText(text string) string { return encoded.ReplaceAllStringFunc(text, Unshelved) }
