package kubeconfig

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

const secret = "c2VjcmV0"

// pair is a self-signed certificate and its key; what it says does not matter here.
func pair(t *testing.T) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("red.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	certPEM, keyPEM := pair(t)
	access := Access{
		Cluster: "red", User: "admin",
		Server: "https://10.0.0.1:6443", ServerName: "red.tenants",
		CA: certPEM, Certificate: certPEM, Key: keyPEM,
	}
	data, err := access.Write()
	if err != nil {
		t.Fatal(err)
	}
	got, err := RESTConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	want := &rest.Config{
		Host: "https://10.0.0.1:6443",
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: "red.tenants", CAData: certPEM, CertData: certPEM, KeyData: keyPEM,
		},
		QPS:            -1,
		WarningHandler: rest.NoWarnings{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := access.Write()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Error("the same access gave other bytes")
	}
}

func TestRESTConfig(t *testing.T) {
	certPEM, keyPEM := pair(t)
	otherCert, _ := pair(t)
	cases := map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		want   []string // in the error; none if it is good
	}{
		"Token": {func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}, nil},
		"SystemRoots": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData = nil
		}, nil},
		"Password": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.Username, u.Password = "", "admin", secret
		}, nil},
		"Certificate": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.ClientCertificateData, u.ClientKeyData = "", certPEM, keyPEM
		}, nil},
		"Exec": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1"}
		}, []string{"exec", "client certificate or a token"}},
		"AuthProvider": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}, []string{"auth-provider"}},
		"TokenFile": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.TokenFile = "", "/var/run/secrets/kubernetes.io/serviceaccount/token"
		}, []string{"tokenFile", "embed it as token", "no credentials"}},
		"CertificateFile": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificate, u.ClientKey = "/etc/kubernetes/admin.crt", "/etc/kubernetes/admin.key"
		}, []string{"sets client-certificate,", "sets client-key,"}},
		"CAFile": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthority = "/etc/kubernetes/ca.crt"
		}, []string{"certificate-authority,"}},
		"Insecure": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		}, []string{"insecure-skip-tls-verify"}},
		"Proxy": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.ProxyURL = "socks5://10.0.0.2:1080"
		}, []string{"proxy-url"}},
		"PlainHTTP": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "http://10.0.0.1:8080"
		}, []string{"https://"}},
		"NoServer": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = ""
		}, []string{"https://"}},
		"SecretInURL": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://admin:" + secret + "@10.0.0.1"
		}, []string{"without user"}},
		"BrokenCA": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData = []byte(secret)
		}, []string{"certificate-authority-data"}},
		"KeyOfAnother": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData = otherCert, keyPEM
		}, []string{"not a certificate and its key"}},
		"CertificateWithoutKey": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData = certPEM
		}, []string{"not a certificate and its key"}},
		"NoCredentials": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token = ""
		}, []string{"no credentials"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clientcmdapi.Cluster{Server: "https://10.0.0.1:6443", CertificateAuthorityData: certPEM}
			user := &clientcmdapi.AuthInfo{Token: secret}
			tc.change(cluster, user)
			_, err := RESTConfig(write(t, cluster, user))
			expect(t, err, tc.want)
		})
	}
}

func TestBrokenKubeconfigs(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"Empty":          {"", "no current-context"},
		"NotYAML":        {"{" + secret, "cannot be parsed"},
		"Word":           {secret, "cannot be parsed"},
		"OtherKind":      {"apiVersion: v1\nkind: Secret\ndata: {token: " + secret + "}", "cannot be parsed"},
		"WrongType":      {"apiVersion: v1\nkind: Config\nusers: " + secret, "cannot be parsed"},
		"NoContext":      {"apiVersion: v1\nkind: Config\ncurrent-context: a", "current-context does not exist"},
		"ContextOfNone":  {"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b}}]", "cluster of"},
		"NoUser":         {"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: [{name: b, cluster: {}}]", "user of"},
		"NoSuchContexts": {"apiVersion: v1\nkind: Config", "no current-context"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := RESTConfig([]byte(tc.data))
			expect(t, err, []string{tc.want})
		})
	}
}

// TestOtherContextsDoNotMatter: a context that is not current may ask for what
// it likes.
func TestOtherContextsDoNotMatter(t *testing.T) {
	certPEM, _ := pair(t)
	config, err := clientcmd.Load(write(t,
		&clientcmdapi.Cluster{Server: "https://10.0.0.1", CertificateAuthorityData: certPEM},
		&clientcmdapi.AuthInfo{Token: secret}))
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos["other"] = &clientcmdapi.AuthInfo{TokenFile: "/token"}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RESTConfig(data); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"red": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": user},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "red", AuthInfo: "admin"}},
		CurrentContext: "it",
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expect checks the error's parts, and that it never quotes a secret.
func expect(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		if len(want) > 0 {
			t.Errorf("no error, want %q", want)
		}
		return
	}
	if len(want) == 0 {
		t.Fatalf("unexpected error: %v", err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if block, _ := pem.Decode([]byte(err.Error())); block != nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %q quotes a secret", err)
	}
}
