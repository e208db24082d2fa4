package component

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
)

// NameVar binds a namespace and a name to a flag.
func NameVar(flags *pflag.FlagSet, p *types.NamespacedName, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*p, err = parseName(text)
		return err
	})
}

// parseName reads NAMESPACE/NAME. An empty text is none.
func parseName(text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q is not NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
