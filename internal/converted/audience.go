package converted

import (
	"strings"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// audienceDomain begins the audiences of tokens of converted tenants, all of which
// the super cluster signs.
const audienceDomain = "converted." + names.Domain + "/"

// ClusterAudience is the audience of tokens for the tenant's own cluster, as the
// tenant names it.
const ClusterAudience = "https://kubernetes.default.svc.cluster.local"

// Audience returns the audience in the super cluster of tokens for the tenant's
// own cluster, which only the gateway accepts. The super cluster's admission
// policies have the same form.
func Audience(clusterKey string) string { return audienceDomain + clusterKey }

// SuperAudience returns the audience in the super cluster of one that a tenant
// names. It is neither the super cluster's nor another tenant's.
func SuperAudience(clusterKey, tenant string) string {
	if tenant == ClusterAudience {
		return Audience(clusterKey)
	}
	return Audience(clusterKey) + "/" + tenant
}

// TenantAudience undoes SuperAudience; it reports false for an audience that is
// not the tenant's.
func TenantAudience(clusterKey, super string) (string, bool) {
	rest, ok := strings.CutPrefix(super, Audience(clusterKey))
	if rest == "" {
		return ClusterAudience, ok
	}
	tenant, slash := strings.CutPrefix(rest, "/")
	return tenant, ok && slash
}

// OfAudience returns the cluster key of the tenant whose an audience is, its
// cluster's or another one; empty if it is of no tenant.
func OfAudience(audience string) string {
	rest, ok := strings.CutPrefix(audience, audienceDomain)
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(rest, "/")
	return key
}
