package external

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
	"github.com/virtualcluster/virtualcluster/internal/version"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// patience is how long an apiserver may take to answer.
	patience = 5 * time.Second
	// maxBody and maxVersion bound what is read of an answer and what of it the
	// status can hold.
	maxBody    = 64 << 10
	maxVersion = 64
)

// ask puts a question to an apiserver: its version, as the kubeconfig's user.
// Credentials that it does not know are refused even there.
func ask(ctx context.Context, q question) *answer {
	runs, err := getVersion(ctx, q.config)
	var failure *provisioner.Failure
	if err != nil {
		failure = explain(q.config.Host, err)
	}
	return &answer{of: q, version: runs, failure: failure}
}

// statusError is an answer that is no version.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP status " + http.StatusText(e.code) }

var errNoVersion = errors.New("the answer is not that of a Kubernetes apiserver")

// getVersion gets /version over a connection of its own. A shared transport
// would be kept for as long as the process runs.
func getVersion(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := newClient(ctx, config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/version", nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if redirect, ok := errors.AsType[*tenanthttp.RedirectError](err); ok {
		return "", &statusError{redirect.Code}
	}
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // nothing depends on it
	if response.StatusCode != http.StatusOK {
		return "", &statusError{response.StatusCode}
	}
	return parseVersion(response.Body)
}

// newClient makes a client for as long as ctx lasts.
func newClient(ctx context.Context, config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "vc-manager/" + version.String()
	limits := tenanthttp.DefaultLimits()
	limits.Object = maxBody
	return tenanthttp.NewClient(ctx, config, tenanthttp.Options{Limits: limits})
}

// parseVersion reads the version from an answer.
func parseVersion(body io.Reader) (string, error) {
	var info apiversion.Info
	if err := json.NewDecoder(body).Decode(&info); err != nil {
		return "", errNoVersion
	}
	if info.GitVersion == "" || len(info.GitVersion) > maxVersion {
		return "", errNoVersion
	}
	return info.GitVersion, nil
}

// explain makes a Failure of what went wrong. It says the same as long as the
// same is wrong, so without ports and times, and quotes nothing of an answer.
func explain(host string, err error) *provisioner.Failure {
	var (
		status   *statusError
		untruly  *tls.CertificateVerificationError
		alert    tls.AlertError
		resolver *net.DNSError
		network  *net.OpError
	)
	fail := func(reason, format string, args ...any) *provisioner.Failure {
		return &provisioner.Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.As(err, &status) && (status.code == http.StatusUnauthorized || status.code == http.StatusForbidden):
		return fail(tenancyv1alpha1.ReasonUnauthorized,
			"%s refuses the credentials of the kubeconfig (%s): put valid ones into the Secret", host, http.StatusText(status.code))
	case errors.As(err, &status):
		return fail(tenancyv1alpha1.ReasonUnreachable, "%s answers with status %d where a version is expected", host, status.code)
	case errors.As(err, &untruly):
		return fail(tenancyv1alpha1.ReasonKubeconfigInvalid,
			"the certificate of %s does not hold against the kubeconfig's CA and server name: %s", host, distrust(untruly.Err))
	case errors.As(err, &alert):
		return fail(tenancyv1alpha1.ReasonUnauthorized, "%s refuses the kubeconfig's client certificate: %s", host, alert)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(tenancyv1alpha1.ReasonUnreachable, "%s does not answer within %s", host, patience)
	case errors.As(err, &resolver):
		return fail(tenancyv1alpha1.ReasonUnreachable, "the host name of %s cannot be resolved", host)
	case errors.As(err, &network):
		return fail(tenancyv1alpha1.ReasonUnreachable, "%s cannot be reached: %s", host, network.Err)
	case errors.Is(err, errNoVersion):
		return fail(tenancyv1alpha1.ReasonUnreachable, "%s: %s", host, errNoVersion)
	default:
		return fail(tenancyv1alpha1.ReasonUnreachable, "cannot read the version of %s", host)
	}
}

// distrust returns the reason why a certificate is invalid, without the time of
// day that the error of an expired one contains.
func distrust(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "it has expired or is not valid yet"
	}
	return err.Error()
}
