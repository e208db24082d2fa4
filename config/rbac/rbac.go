// Package rbac holds the manifests of the programs' service accounts and roles,
// for programs that install them.
package rbac

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/virtualcluster/virtualcluster/config/internal/manifest"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Names in the manifests.
const (
	// Namespace is where the programs run.
	Namespace = "vc-system"
	// ReplicasNamespace is where the leases of syncers that share the tenants are.
	ReplicasNamespace = "vc-syncer-replicas"
	// Manager is the service account of vc-manager, and its roles.
	Manager = "vc-manager"
	// Syncer is the service account of vc-syncer, and its roles.
	Syncer = "vc-syncer"
	// Agent is the service account of vn-agent, and its roles.
	Agent = "vn-agent"
	// DNS is the service account of vc-dns, and its role.
	DNS = "vc-dns"
	// Host is the service account of vc-host, and its roles.
	Host = "vc-host"
	// Gateway is the service account of vc-gateway, and its roles.
	Gateway = "vc-gateway"
	// HostReplicasNamespace is where the leases of replicas of vc-host are.
	HostReplicasNamespace = "vc-host-replicas"
	// HostKeys is the ClusterRole with the rights on the Secrets of a control
	// plane, and the name of its binding in each root namespace.
	HostKeys = "vc-host-keys"
	// AggregateToSyncer is a label on a ClusterRole: with the value true, its
	// rules are rights of the syncer.
	AggregateToSyncer = names.Domain + "/aggregate-to-vc-syncer"
)

//go:embed vc-manager/*role*.yaml vc-manager/service_account.yaml
//go:embed namespaces/namespaces.yaml vc-syncer/*role*.yaml vc-syncer/service_account.yaml vn-agent/*role*.yaml vn-agent/service_account.yaml
//go:embed vc-dns/*role*.yaml vc-dns/service_account.yaml
//go:embed vc-gateway/*role*.yaml vc-gateway/service_account.yaml
//go:embed vc-host/namespace.yaml vc-host/*role*.yaml vc-host/service_account.yaml
var manifests embed.FS

// For returns all that a program needs, Manager, Syncer, Agent, DNS, Gateway or Host, in
// the order in which it can be created.
func For(program string) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests, program+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded roles: %w", err)
	}
	return manifest.Read(manifests, append([]string{"namespaces/namespaces.yaml"}, files...)...)
}
