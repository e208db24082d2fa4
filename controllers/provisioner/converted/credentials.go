package converted

import (
	"context"
	"crypto/rand"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// keysSecret is the Secret in the root namespace with the credentials of a
// converted tenant.
const keysSecret = "converted-keys"

// The keys of the Secret.
const (
	authoritiesKey    = "ca.crt"
	authoritiesKeyKey = "ca.key"
	adminKey          = "admin.crt"
	adminKeyKey       = "admin.key"
	continueKey       = "continue.key"
	tokenKey          = "token"
	tokenRenewalKey   = "token-renewal"
)

const (
	day               = 24 * time.Hour
	authorityValidity = 10 * 365 * day
	defaultValidity   = 365 * day
	// tokenValidity is short: the token is renewed after half of it.
	tokenValidity = 4 * time.Hour

	continueKeyBytes = 32

	adminUser    = "admin"
	mastersGroup = "system:masters"
)

// credentials are those of a converted tenant.
type credentials struct {
	// authorities verify the certificates of its users.
	authorities []byte
	admin       pki.KeyPair
	// token is that of its service account of the super cluster, and continueKey
	// seals the tokens to continue lists.
	token, continueKey []byte
}

// kubeconfig returns that of the tenant's admin at a server of the gateway.
func (c credentials) kubeconfig(server string, ca []byte, clusterKey string) ([]byte, error) {
	return kubeconfig.Access{
		Cluster: clusterKey, User: adminUser, Server: server, CA: ca, Certificate: c.admin.CertPEM, Key: c.admin.KeyPEM,
	}.Write()
}

// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=converted-keys,verbs=get;create;patch;update

// ensureCredentials makes and renews the credentials.
func (p *Provisioner) ensureCredentials(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (credentials, error) {
	name := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: keysSecret}
	data, err := p.secrets.Ensure(ctx, name, func(before map[string][]byte) (map[string][]byte, error) {
		data, err := renewCertificates(before, validityOf(vc), p.now())
		if err != nil {
			return nil, err
		}
		if data[continueKey] = before[continueKey]; len(data[continueKey]) != continueKeyBytes {
			data[continueKey] = make([]byte, continueKeyBytes)
			_, _ = rand.Read(data[continueKey]) // never fails
		}
		data[tokenKey], data[tokenRenewalKey], err = p.renewToken(ctx, before, vc)
		return data, err
	})
	if err != nil {
		return credentials{}, err
	}
	return credentials{
		authorities: data[authoritiesKey], token: data[tokenKey], continueKey: data[continueKey],
		admin: pki.KeyPair{CertPEM: data[adminKey], KeyPEM: data[adminKeyKey]},
	}, nil
}

// validityOf returns how long the certificates of a tenant are valid.
func validityOf(vc *tenancyv1alpha1.VirtualCluster) time.Duration {
	if days := vc.Spec.PKIExpireDays; days > 0 {
		return time.Duration(days) * day
	}
	return defaultValidity
}

// renewCertificates returns the authority of the users and the certificate of
// the admin, which are those in data as long as they are good.
func renewCertificates(data map[string][]byte, validity time.Duration, now time.Time) (map[string][]byte, error) {
	authorities, err := pki.ParseAuthorities(data[authoritiesKey], data[authoritiesKeyKey], now).
		Renew("virtualcluster-converted", authorityValidity, now)
	if err != nil {
		return nil, err
	}
	admin := pki.KeyPair{CertPEM: data[adminKey], KeyPEM: data[adminKeyKey]}
	if pki.NeedsRenewal(admin.CertPEM, now) {
		if admin, err = authorities.Signer(now).Client(adminUser, []string{mastersGroup}, validity, now); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{
		authoritiesKey: authorities.CertsPEM(), authoritiesKeyKey: authorities.KeysPEM(),
		adminKey: admin.CertPEM, adminKeyKey: admin.KeyPEM,
	}, nil
}

// renewToken returns the token of the tenant's service account, and after which
// time to request another one.
func (p *Provisioner) renewToken(
	ctx context.Context, before map[string][]byte, vc *tenancyv1alpha1.VirtualCluster,
) (token, renewal []byte, err error) {
	if at, err := time.Parse(time.RFC3339, string(before[tokenRenewalKey])); err == nil && p.now().Before(at) {
		return before[tokenKey], before[tokenRenewalKey], nil
	}
	issued, err := requestToken(ctx, p.client, vc.Status.ClusterNamespace, authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenValidity.Seconds())),
	})
	if err != nil {
		return nil, nil, err
	}
	renew := p.now().Add(issued.ExpirationTimestamp.Sub(p.now()) / 2)
	return []byte(issued.Token), []byte(renew.UTC().Format(time.RFC3339)), nil
}
