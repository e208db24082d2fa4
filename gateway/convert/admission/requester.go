package admission

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// requesterKind is who has sent a request to the super cluster.
type requesterKind int

const (
	// platform: what it writes is not the tenant's to decide.
	platform requesterKind = iota
	// ofTenant: a user of the tenant, through the gateway.
	ofTenant
	// unknown: a user of the tenant, of a request that was sent before the gateway
	// knew that the tenant has webhooks or policies.
	unknown
	// controller: a controller of the super cluster, which does for the tenant what
	// those of a cluster do.
	controller
)

// controllers begins the accounts of controllers, which have the same names in
// each cluster. Some clusters run them as others.
var (
	controllers     = serviceaccount.MakeUsername(metav1.NamespaceSystem, "")
	withControllers = []string{user.KubeControllerManager, user.APIServerUser}
)

// classify returns who has sent a request, and the user as the tenant knows it.
func (h *Handler) classify(key string, super authenticationv1.UserInfo) (user.Info, requesterKind) {
	isFenced := super.Username == serviceaccount.MakeUsername(key, names.ConvertedAccount)
	if isFenced || h.IsGateway(super.Username) {
		switch who, ok := requester.Read(super); {
		case ok:
			return who, ofTenant
		case isFenced:
			return nil, unknown
		}
		return nil, platform
	}
	if strings.HasPrefix(super.Username, controllers) || slices.Contains(withControllers, super.Username) {
		return &user.DefaultInfo{Name: super.Username, Groups: ownGroups(super.Groups)}, controller
	}
	return nil, platform
}

// ownGroups returns the groups that each cluster has.
func ownGroups(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return !strings.HasPrefix(group, "system:") })
}
