// Package installation knows what an installation of VirtualCluster consists of
// in a super cluster, and finds it.
package installation

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
)

// Labels and annotations of the objects of an installation.
const (
	// PartOf is a label on all objects of the chart, and on the pods of an
	// installation by kustomize.
	PartOf = "app.kubernetes.io/part-of"
	// Name is the label with the component of an object.
	Name = "app.kubernetes.io/name"
	// Project is the value of PartOf.
	Project = "virtualcluster"
	// ReleaseName and ReleaseNamespace are the annotations by which Helm knows
	// the objects of a release.
	ReleaseName      = "meta.helm.sh/release-name"
	ReleaseNamespace = "meta.helm.sh/release-namespace"
)

// The workloads of an installation, by the names of their objects.
const (
	Manager = rbac.Manager
	Syncer  = rbac.Syncer
	Host    = rbac.Host
	Agent   = rbac.Agent
	DNS     = rbac.DNS
	Gateway = rbac.Gateway
	Store   = "vc-store"
)

// Deployments returns the names of the Deployments that an installation can
// have.
func Deployments() []string { return []string{Manager, Syncer, Host, Agent, DNS, Gateway} }

// Find returns the namespace of the installation; empty if there is none. A
// cluster has one installation at most.
func Find(ctx context.Context, super client.Reader) (string, error) {
	for _, name := range Deployments() {
		list := &appsv1.DeploymentList{}
		if err := super.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil {
			return "", fmt.Errorf("find the installation: list Deployments %s: %w", name, err)
		}
		for i := range list.Items {
			if IsOurs(&list.Items[i]) {
				return list.Items[i].Namespace, nil
			}
		}
	}
	return "", nil
}

// IsOurs reports whether a Deployment is one of an installation, by Helm or by
// kustomize.
func IsOurs(d *appsv1.Deployment) bool { return d.Spec.Template.Labels[PartOf] == Project }
