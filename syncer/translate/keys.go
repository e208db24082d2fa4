package translate

import (
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Kinds whose labels selectors name.
const (
	podKind       = "Pod"
	namespaceKind = "Namespace"
)

// keys are patterns of the keys of labels and annotations.
type keys struct{ labels, annotations []string }

// familiar are the labels of workloads by which tools of a platform group what they show.
var familiar = []string{"app.kubernetes.io/"}

// carried are the keys that go down unchanged with objects of a kind, besides plain ones of pods and services. All others stay in
// the tenant, unless its policy says otherwise: too many of them instruct a controller, a webhook or a node of the super cluster.
var carried = map[string]keys{
	podKind: {labels: append([]string{
		"apps.kubernetes.io/pod-index", "batch.kubernetes.io/", "statefulset.kubernetes.io/pod-name",
	}, familiar...)},
	"Service": {labels: familiar, annotations: []string{
		"service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode",
	}},
	"Endpoints":     {labels: []string{"endpointslice.kubernetes.io/skip-mirror"}},
	"EndpointSlice": {labels: []string{"endpointslice.kubernetes.io/managed-by", "kubernetes.io/service-name"}},
	"Ingress":       {annotations: []string{"kubernetes.io/ingress.class"}}, // has to be offered
}

// supers are labels that each apiserver sets by itself. The copy has the super cluster's.
var supers = map[string][]string{
	namespaceKind: {"kubernetes.io/metadata.name"},
	podKind:       {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"},
}

// plainLabels are the kinds whose labels without a domain are carried. By Kubernetes' convention they are the user's own, and no
// component gives them a meaning.
var plainLabels = []string{podKind, "Service"}

// unconventional are labels without a domain that a component interprets: aadpodidbinding gives pods a cloud identity.
var unconventional = []string{"aadpodidbinding"}

// withheld are keys that no policy allows: keys that weaken Pod Security admission or that an apiserver enforces or sets itself,
// keys that name a class in place of the field that is checked, and the notes of other controllers.
var withheld = []string{
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

// carriesLabel reports whether copies of a kind have a label under its own key.
func (t Tenant) carriesLabel(kind, key string) bool {
	if names.Reserved(key) || matchesAny(withheld, key) {
		return false
	}
	return matchesAny(carried[kind].labels, key) || slices.Contains(plainLabels, kind) && plain(key) || t.allows(kind, key, labelsOf)
}

// carriesAnnotation reports whether copies of a kind have an annotation.
func (t Tenant) carriesAnnotation(kind, key string) bool {
	if names.Reserved(key) || matchesAny(withheld, key) || hasPrefix(key, t.Opaque) {
		return false
	}
	return matchesAny(carried[kind].annotations, key) || t.allows(kind, key, annotationsOf)
}

// plain reports whether a key is the user's own by convention. A dot is a domain that comes without a slash, as in the annotations of
// container runtimes.
func plain(key string) bool {
	return !strings.ContainsAny(key, "./") && !slices.Contains(unconventional, key)
}

// matchesAny reports whether a key matches one of the patterns: it is the same, or begins with what ends in a slash or stands before a *.
func matchesAny(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return key == pattern || (open || strings.HasSuffix(pattern, "/")) && strings.HasPrefix(key, beginning)
	})
}
