package resources

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// maxNamedGateways is the maximum number of Gateways in a rejection.
const maxNamedGateways = 5

// gateways is the name of the kind of Gateways.
var gateways = schema.GroupKind{Group: gatewayGroup, Kind: gatewayKind}.String()

// routeChecker checks the references of a route.
type routeChecker struct{ view kinds.View }

// check rejects a reference that leads out of the tenant, and makes the others
// those of the copy.
func (c routeChecker) check(path string, as role, ref map[string]any) error {
	if as == attachment {
		return c.checkParent(path, ref)
	}
	return c.checkBackend(path, ref)
}

// checkParent rejects a parent that is no offered Gateway. The namespace of a
// parent is that in the super cluster, so it is the same in the copy and in the
// status.
func (c routeChecker) checkParent(path string, ref map[string]any) error {
	group, kind := textOr(ref, "group", gatewayGroup), textOr(ref, "kind", gatewayKind)
	if group != gatewayGroup || kind != gatewayKind {
		return fmt.Errorf("%s is of kind %s: attach the route to a Gateway that the super cluster offers", path, kindName(&group, kind))
	}
	offered := c.view.Offered(gateways)
	key := client.ObjectKey{Namespace: textOf(ref, "namespace"), Name: textOf(ref, "name")}
	if slices.Contains(offered, key) {
		return nil
	}
	return fmt.Errorf("%s is the Gateway %q, which the super cluster does not offer: %s", path, key, choices(offered))
}

// choices returns what a tenant can choose instead of a Gateway that is not
// offered.
func choices(offered []client.ObjectKey) string {
	if len(offered) == 0 {
		return "it offers none"
	}
	var named []string
	for _, key := range offered[:min(len(offered), maxNamedGateways)] {
		named = append(named, key.String())
	}
	text := "choose one by its namespace and name, of " + strings.Join(named, ", ")
	if n := len(offered) - len(named); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// checkBackend rejects a backend that is no Service of the route's namespace.
func (c routeChecker) checkBackend(path string, ref map[string]any) error {
	group, kind := textOr(ref, "group", ""), textOr(ref, "kind", serviceKind)
	if group != "" || kind != serviceKind {
		return fmt.Errorf("%s is of kind %s: only Services can be backends", path, kindName(&group, kind))
	}
	if namespace := textOr(ref, "namespace", c.view.Namespace); namespace != c.view.Namespace {
		return fmt.Errorf("%s is in the namespace %s: only Services of the route's own namespace can be backends", path, namespace)
	}
	delete(ref, "namespace")
	return nil
}

// textOf returns the text of a field; empty if it has none.
func textOf(of map[string]any, field string) string {
	text, _ := of[field].(string)
	return text
}

// textOr returns the text of a field, or a default for a field that is missing
// or null.
func textOr(of map[string]any, field, otherwise string) string {
	if of[field] == nil {
		return otherwise
	}
	return textOf(of, field)
}
