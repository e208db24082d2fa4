package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// unlimited turns client-side rate limits off; 0 would mean five requests a second.
const unlimited = -1

// RESTConfig reads a kubeconfig and makes the client configuration of its
// current context, without rate limits and without printing the server's
// warnings. Only what is listed here has an effect; what would run a program,
// read a file, send requests through a proxy or leave the server unverified is
// refused. Errors never quote the kubeconfig.
func RESTConfig(data []byte) (*rest.Config, error) {
	cluster, user, err := current(data)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkCluster(cluster), checkUser(user)); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: cluster.Server,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
		BearerToken: user.Token,
		Username:    user.Username,
		Password:    user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate,
			UID:      user.ImpersonateUID,
			Groups:   user.ImpersonateGroups,
			Extra:    user.ImpersonateUserExtra,
		},
		DisableCompression: cluster.DisableCompression,
		QPS:                unlimited,
		WarningHandler:     rest.NoWarnings{},
	}, nil
}

// current finds the cluster and the user of the current context.
func current(data []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		// The parser's error may quote what it read.
		return nil, nil, errors.New("the kubeconfig cannot be parsed: it must be YAML of kind Config, apiVersion v1")
	}
	if config.CurrentContext == "" {
		return nil, nil, errors.New("the kubeconfig has no current-context: set it")
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, nil, errors.New("the kubeconfig's current-context does not exist in it")
	}
	cluster, ok := config.Clusters[context.Cluster]
	if !ok {
		return nil, nil, errors.New("the cluster of the kubeconfig's current-context does not exist in it")
	}
	user, ok := config.AuthInfos[context.AuthInfo]
	if !ok {
		return nil, nil, errors.New("the user of the kubeconfig's current-context does not exist in it")
	}
	return cluster, user, nil
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	return errors.Join(
		checkServer(cluster.Server),
		refuse("certificate-authority", cluster.CertificateAuthority != "", "embed it as certificate-authority-data"),
		refuse("insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify, "set certificate-authority-data, and tls-server-name if need be"),
		refuse("proxy-url", cluster.ProxyURL != "", "name a server that can be reached directly"),
		checkCA(cluster.CertificateAuthorityData),
	)
}

// checkServer keeps credentials off plain connections, and secrets out of the
// URL, which is shown in a status.
func checkServer(server string) error {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return errors.New("the kubeconfig's server must be a URL that begins with https://")
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return errors.New("the kubeconfig's server must be a URL without user, query and fragment")
	}
	return nil
}

// checkCA says so if there is a CA that could verify nothing. Without one, the
// system's are used.
func checkCA(ca []byte) error {
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return errors.New("the kubeconfig's certificate-authority-data holds no certificate in PEM")
	}
	return nil
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	return errors.Join(
		refuse("exec", user.Exec != nil, "use a client certificate or a token"),
		refuse("auth-provider", user.AuthProvider != nil, "use a client certificate or a token"),
		refuse("tokenFile", user.TokenFile != "", "embed it as token"),
		refuse("client-certificate", user.ClientCertificate != "", "embed it as client-certificate-data"),
		refuse("client-key", user.ClientKey != "", "embed it as client-key-data"),
		checkCredentials(user),
	)
}

// checkCredentials asks for a credential that is whole.
func checkCredentials(user *clientcmdapi.AuthInfo) error {
	certificate := len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0
	if !certificate {
		if user.Token == "" && user.Username == "" {
			return errors.New("the kubeconfig's user has no credentials: it needs a client certificate with its key, or a token")
		}
		return nil
	}
	if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
		return errors.New("the kubeconfig's client-certificate-data and client-key-data are not a certificate and its key in PEM")
	}
	return nil
}

// refuse is the error for a field that is set and not allowed, and says what to
// do instead.
func refuse(field string, set bool, instead string) error {
	if !set {
		return nil
	}
	return fmt.Errorf("the kubeconfig sets %s, which is not allowed here: %s", field, instead)
}
