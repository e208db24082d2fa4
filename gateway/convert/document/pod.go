package document

import (
	"fmt"
	"strings"

	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// audience converts the audience of a token; empty stays empty, for which the
// super cluster's admission sets that of the tenant's cluster.
func (d down) audience(value any) (any, error) {
	audience, ok := value.(string)
	switch {
	case !ok:
		return nil, errShape
	case audience == "":
		return audience, nil
	}
	return converted.SuperAudience(d.Key, audience), nil
}

// audience undoes the conversion of an audience.
func (u up) audience(value any) any {
	super, _ := value.(string)
	if tenant, ok := converted.TenantAudience(u.Key, super); ok {
		return tenant
	}
	return value
}

// The path of the namespace of a pod, and of the annotation that holds the
// tenant's name of it, which the super cluster's admission sets.
const (
	namespacePath  = "metadata.namespace"
	annotationPath = "metadata.annotations['" + names.Namespace + "']"
)

// fieldPath converts the path of a field that containers read.
func (d down) fieldPath(value any) (any, error) {
	path, ok := value.(string)
	switch {
	case !ok:
		return nil, errShape
	case path == namespacePath:
		return annotationPath, nil
	}
	_, quoted, _ := strings.Cut(path, "['")
	key, _, _ := strings.Cut(quoted, "']")
	if names.Reserved(key) {
		return nil, fmt.Errorf("%s: %w", path, errReserved)
	}
	return path, nil
}

// fieldPath undoes the conversion of a path.
func (u up) fieldPath(value any) any {
	if value == annotationPath {
		return namespacePath
	}
	return value
}
