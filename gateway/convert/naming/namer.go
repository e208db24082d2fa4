// Package naming turns the names of a converted tenant into those of the super
// cluster, and back. No other package of the gateway does.
package naming

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Namespaces is an index of the namespaces of converted tenants in the super
// cluster.
type Namespaces interface {
	// TenantName returns the tenant's name of a namespace of the super cluster,
	// or false if the namespace is not the tenant's.
	TenantName(clusterKey, superName string) (string, bool)
}

// Namer turns the names of one tenant.
type Namer struct {
	// Key is the cluster key of the tenant.
	Key string
	// Namespaces has the tenant's namespaces.
	Namespaces Namespaces
}

// tenantItself stands for the cluster key in texts.
const tenantItself = "tenant"

// Namespace returns the name in the super cluster of the tenant's namespace, in
// the same form as for all other tenants. No valid name is too long.
func (n Namer) Namespace(tenant string) (string, error) {
	if wrong := validation.IsDNS1123Label(tenant); len(wrong) > 0 {
		return "", fmt.Errorf("namespace %q: %s", tenant, strings.Join(wrong, ", "))
	}
	return names.SuperNamespace(n.Key, tenant), nil
}

// TenantNamespace undoes Namespace by the index: the name alone does not show
// which tenant a namespace belongs to, nor what a shortened name was before.
func (n Namer) TenantNamespace(super string) (string, error) {
	tenant, ok := n.Namespaces.TenantName(n.Key, super)
	if !ok {
		return "", errors.New("a namespace of the super cluster is not one of the tenant")
	}
	return tenant, nil
}

// provisioned is the form of the names of PersistentVolumes that were made for
// a claim: the claim's UID is in it.
var provisioned = regexp.MustCompile(`^pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsProvisionedVolume reports whether a name is that of a PersistentVolume that
// was provisioned for one claim, and that no other claim can use.
func (Namer) IsProvisionedVolume(name string) bool { return provisioned.MatchString(name) }

// Text takes the names of the super cluster out of a text about an object in a
// namespace of the tenant; namespace is empty if it is about none.
func (n Namer) Text(text, namespace string) string {
	text = names.TenantText(text, n.Key, tenantItself, namespace)
	if strings.Contains(text, names.ConvertedGroups) {
		text = strings.ReplaceAll(text, names.ConvertedGroup(n.Key), "")
	}
	return conversionText(admissionText(text))
}

// The super cluster's webhooks by which it asks the gateway: one that denies
// repeats what the tenant's own says, and one that fails shows the URL of the
// gateway with its secret.
var (
	deniedBy = regexp.MustCompile(`admission webhook \\?"[a-z]+\.` + regexp.QuoteMeta(names.ConvertedAdmission) + `\\?" denied the request: `)
	failedAt = regexp.MustCompile(`(?s)failed calling webhook \\?"[a-z]+\.` + regexp.QuoteMeta(names.ConvertedAdmission) + `.*`)
)

// admissionText returns a text as if the tenant's cluster had no webhooks but the
// tenant's.
func admissionText(text string) string {
	if !strings.Contains(text, names.ConvertedAdmission) {
		return text
	}
	text = deniedBy.ReplaceAllString(text, "")
	return failedAt.ReplaceAllString(text, "the webhooks and policies of the tenant cannot be evaluated at the moment: try again")
}

// conversionAt is the URL of the gateway for a CRD, which has a secret, in a text
// that says why the super cluster could not call it, up to the end.
var conversionAt = regexp.MustCompile(`(?s)(Post )?\\?"?https://[^\s"\\]*` + regexp.QuoteMeta(names.ConversionPath) + `.*`)

// conversionText returns a text as if the tenant's cluster called the conversion
// webhooks itself.
func conversionText(text string) string {
	if !strings.Contains(text, names.ConversionPath) {
		return text
	}
	return conversionAt.ReplaceAllString(text, "conversion webhooks cannot be called at the moment: try again")
}
