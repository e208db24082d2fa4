package external

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func TestParse(t *testing.T) {
	write := func(server string) []byte {
		data, err := kubeconfig.Access{Cluster: "red", User: "admin", Server: server}.Write()
		if err != nil {
			t.Fatal(err)
		}
		// A token is the shortest credential.
		return []byte(strings.Replace(string(data), "user: {}", "user: {token: t}", 1))
	}
	cases := map[string]struct {
		data            []byte
		reason, message string
	}{
		"Good":    {write("https://red"), "", ""},
		"Missing": {nil, tenancyv1alpha1.ReasonKubeconfigMissing, "Secret tenants/red has nothing under the key kubeconfig"},
		"Broken":  {[]byte("{"), tenancyv1alpha1.ReasonKubeconfigInvalid, "Secret tenants/red: the kubeconfig cannot be parsed"},
		"Plain":   {write("http://red"), tenancyv1alpha1.ReasonKubeconfigInvalid, "https://"},
		"Long":    {write("https://red/" + strings.Repeat("r", maxEndpoint)), tenancyv1alpha1.ReasonKubeconfigInvalid, "2048 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, err := parse(types.NamespacedName{Namespace: "tenants", Name: "red"}, tc.data)
			failure(t, err, tc.reason, tc.message)
			if err == nil && q.config.Host != "https://red" {
				t.Errorf("host %s", q.config.Host)
			}
		})
	}
}

func TestCheckKubeletClientCA(t *testing.T) {
	ca, err := pki.NewAuthority("kubelet-client-ca", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ data, reason string }{
		"None":    {"", ""},
		"Good":    {string(ca.CertPEM), ""},
		"Bundle":  {string(ca.CertPEM) + string(ca.CertPEM), ""},
		"KeyOnly": {string(ca.KeyPEM), tenancyv1alpha1.ReasonKubeconfigInvalid},
		"NoPEM":   {"certificate", tenancyv1alpha1.ReasonKubeconfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{KubeletClientCAKey: []byte(tc.data)}}
			secret.Namespace, secret.Name = "tenants", "red"
			failure(t, checkKubeletClientCA(secret), tc.reason, "Secret tenants/red has no certificate in PEM under the key kubelet-client-ca.crt")
		})
	}
}

func TestMatchVersion(t *testing.T) {
	cases := map[string]struct{ want, runs, reason string }{
		"Any":        {"", "v1.36.3", ""},
		"Minor":      {"1.36", "v1.36.3", ""},
		"Exact":      {"v1.36.3", "v1.36.3", ""},
		"OtherPatch": {"v1.36.1", "v1.36.3", ""},
		"Vendor":     {"1.36", "v1.36.3-gke.100", ""},
		"PlusSign":   {"1.36", "v1.36.3+k3s1", ""},
		"OtherMinor": {"1.35", "v1.36.3", tenancyv1alpha1.ReasonUnsupportedVersion},
		"OtherMajor": {"2.36", "v1.36.3", tenancyv1alpha1.ReasonUnsupportedVersion},
		"BadWish":    {"latest", "v1.36.3", tenancyv1alpha1.ReasonInvalidSpec},
		"BadAnswer":  {"1.36", "unknown", tenancyv1alpha1.ReasonUnsupportedVersion},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { failure(t, matchVersion(tc.want, tc.runs), tc.reason, "") })
	}
}

func failure(t *testing.T, err error, reason, message string) {
	t.Helper()
	if reason == "" {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	f := provisioner.AsFailure(err)
	if f == nil || f.Reason != reason || !strings.Contains(f.Message, message) {
		t.Errorf("got %v, want reason %s and %q", err, reason, message)
	}
}
