package translate

import (
	"slices"
	"strings"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Kinds whose labels are named by selectors.
const (
	podKind       = "Pod"
	namespaceKind = "Namespace"
)

// keys are patterns for the keys of labels and annotations.
type keys struct{ labels, annotations []string }

// familiar are labels of workloads by which tools of a platform group objects.
var familiar = []string{"app.kubernetes.io/"}

// allowed are the keys that are synced down unchanged with objects of a kind,
// in addition to the plain labels of pods and services. All other keys stay in
// the tenant unless its policy allows them: too many of them instruct a
// controller, a webhook or a node of the super cluster.
var allowed = map[string]keys{
	podKind: {labels: append([]string{
		"apps.kubernetes.io/pod-index", "batch.kubernetes.io/", "statefulset.kubernetes.io/pod-name",
	}, familiar...)},
	"Service": {labels: familiar, annotations: []string{
		"service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode",
	}},
	"Endpoints":     {labels: []string{"endpointslice.kubernetes.io/skip-mirror"}},
	"EndpointSlice": {labels: []string{"endpointslice.kubernetes.io/managed-by", "kubernetes.io/service-name"}},
	"Ingress":       {annotations: []string{"kubernetes.io/ingress.class"}}, // the class has to be offered
}

// supers are labels that each apiserver sets itself. The copy has those of the
// super cluster.
var supers = map[string][]string{
	namespaceKind: {"kubernetes.io/metadata.name"},
	podKind:       {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"},
}

// plainLabels are the kinds whose labels without a domain are synced down. By
// Kubernetes' convention these labels are private to the user, and no component
// interprets them.
var plainLabels = []string{podKind, "Service"}

// unconventional are labels without a domain that a component interprets:
// aadpodidbinding gives pods a cloud identity.
var unconventional = []string{"aadpodidbinding"}

// withheld are keys that no policy can allow: keys that weaken Pod Security
// admission, that an apiserver enforces or sets itself, or that name a class in
// place of the validated field, and the bookkeeping of other controllers and of
// networks.
var withheld = []string{
	networkv1.CNIArgsAnnotation, networkv1.NICAnnotation, networkv1.ReadinessAnnotation,
	"kubernetes.io/config.*",
	"kubernetes.io/enforce-mountable-secrets",
	"kubernetes.io/metadata.name",
	"pod-security.kubernetes.io/",
	"pv.kubernetes.io/",
	"resource.kubernetes.io/admin-access",
	"resource.kubernetes.io/pod-claim-name",
	"volume.beta.kubernetes.io/",
	"volume.kubernetes.io/",
}

// allowsLabel reports whether copies of a kind have a label under its own key.
func (t Tenant) allowsLabel(kind, key string) bool {
	if names.Reserved(key) || matchesAny(withheld, key) {
		return false
	}
	return matchesAny(allowed[kind].labels, key) || slices.Contains(plainLabels, kind) && plain(key) || t.allows(kind, key, labelsOf)
}

// allowsAnnotation reports whether copies of a kind have an annotation.
func (t Tenant) allowsAnnotation(kind, key string) bool {
	if names.Reserved(key) || matchesAny(withheld, key) || hasPrefix(key, t.Opaque) {
		return false
	}
	return matchesAny(allowed[kind].annotations, key) || t.allows(kind, key, annotationsOf)
}

// plain reports whether a key is private to the user by convention. A dot
// indicates a domain without a slash, as in the annotations of container
// runtimes.
func plain(key string) bool {
	return !strings.ContainsAny(key, "./") && !slices.Contains(unconventional, key)
}

// matchesAny reports whether a key matches one of the patterns. A pattern that
// ends in / or * matches by prefix, any other exactly.
func matchesAny(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return key == pattern || (open || strings.HasSuffix(pattern, "/")) && strings.HasPrefix(key, beginning)
	})
}
