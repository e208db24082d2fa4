package removal

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// managedBy is the label with the tool that has created an object.
const managedBy = "app.kubernetes.io/managed-by"

// isOurs reports whether an object was installed with the installation in a
// namespace: by Helm, as part of its release, or by kustomize.
func isOurs(object *unstructured.Unstructured, namespace string) bool {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels[installation.PartOf] != installation.Project || !slices.Contains(append(namespaces(namespace), ""), object.GetNamespace()) {
		return false
	}
	if release, byHelm := annotations[installation.ReleaseNamespace]; byHelm {
		return release == namespace
	}
	// Kustomize names no tool. Other tools render the chart without Helm.
	return labels[managedBy] == "" || strings.HasPrefix(labels["helm.sh/chart"], installation.Project+"-")
}

// namespaces returns the namespaces of an installation.
func namespaces(namespace string) []string {
	return []string{namespace, rbac.ReplicasNamespace, rbac.HostReplicasNamespace}
}

// residue is what an object in a namespace of the installation is, if it was not
// installed.
type residue int

const (
	// foreign: it belongs to others.
	foreign residue = iota
	// derived: it goes with its owner, or with the namespace.
	derived
	// made: a component has made it.
	made
)

// limits is the webhook of vc-syncer: its Secret, and the Lease of the replica that
// answers.
const limits = "vc-syncer-webhook"

// secrets are those that vc-manager, vc-syncer and vc-gateway make.
func secrets() []string {
	return []string{"vc-manager-webhook", limits, "vc-gateway-tls", "vc-store-authority", "vc-store-members", "vc-store-client"}
}

// classify says what an object in a namespace of an installation is, which Helm
// knows as a release; empty if Helm has not installed it.
func classify(object *unstructured.Unstructured, namespace, release string) residue {
	name := object.GetName()
	if isOurs(object, namespace) || len(object.GetOwnerReferences()) > 0 {
		return derived
	}
	switch object.GetKind() {
	case "Event", "Endpoints", "EndpointSlice", "PodMetrics":
		return derived
	case "ConfigMap":
		return of(name == "kube-root-ca.crt", derived)
	case "ServiceAccount":
		return of(name == "default", derived)
	case "Secret":
		return of(slices.Contains(secrets(), name) || isRelease(object, release), made)
	case "PersistentVolumeClaim":
		return of(object.GetLabels()[installation.Name] == installation.Store, made)
	case "Lease":
		return of(isLease(object, namespace), made)
	}
	return foreign
}

// isRelease reports whether a Secret is one in which Helm keeps a release.
func isRelease(secret *unstructured.Unstructured, release string) bool {
	kind, _, _ := unstructured.NestedString(secret.Object, "type")
	labels := secret.GetLabels()
	return release != "" && kind == "helm.sh/release.v1" && labels["owner"] == "helm" && labels["name"] == release
}

// of returns a residue if an object is one, and foreign otherwise.
func of(is bool, what residue) residue {
	if is {
		return what
	}
	return foreign
}

// isLease reports whether a Lease is of a component: the leader's, or that of a
// replica, which has a namespace of its own.
func isLease(object *unstructured.Unstructured, namespace string) bool {
	if object.GetNamespace() == namespace {
		return slices.Contains(append(installation.Deployments(), limits), object.GetName())
	}
	_, replica := object.GetLabels()[names.Domain+"/replica-of"]
	return replica
}
