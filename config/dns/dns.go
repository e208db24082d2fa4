// Package dns holds the manifests of the DNS that tenants share, for programs
// that install it.
package dns

import (
	_ "embed"
	"strings"
)

// Service is the Service of vc-dns, in the namespace of the project's programs.
const Service = "vc-dns"

var (
	//go:embed config.yaml
	config string
	//go:embed deployment.yaml
	deployment string
	//go:embed disruption_budget.yaml
	disruptionBudget string
	//go:embed network_policy.yaml
	networkPolicy string
	//go:embed service.yaml
	service string
)

// Manifests returns all but the service account and its role, which are in
// config/rbac, in the order in which they can be created.
func Manifests() string {
	return strings.Join([]string{config, service, networkPolicy, disruptionBudget, deployment}, "\n---\n")
}
