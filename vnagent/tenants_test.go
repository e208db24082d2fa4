package vnagent

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// apiserverName is what all tenants' apiservers are called in their
// certificates, so that nothing can depend on it.
const apiserverName = "kube-apiserver-kubelet-client"

var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// world is what the agent's cache holds.
type world struct {
	t       *testing.T
	objects []client.Object
}

// tenant adds a tenant whose published authority is ca.
func (w *world) tenant(name string, ca []byte, change ...func(*tenancyv1alpha1.VirtualCluster, *corev1.ConfigMap)) tenant {
	vc := &tenancyv1alpha1.VirtualCluster{}
	vc.Namespace, vc.Name, vc.UID = "tenants", name, types.UID("uid-of-"+name)
	vc.Status.ClusterNamespace = "key-of-" + name
	published := &corev1.ConfigMap{Data: map[string]string{names.KubeletClientCAKey: string(ca)}}
	published.Namespace, published.Name = vc.Status.ClusterNamespace, names.KubeletClientCAConfigMap
	published.Labels = map[string]string{names.VCName: name, names.VCNamespace: "tenants"}
	published.Annotations = map[string]string{names.VCUID: string(vc.UID)}
	for _, f := range change {
		f(vc, published)
	}
	w.objects = append(w.objects, vc, published)
	return tenant{key: "key-of-" + name, namespace: vc.Namespace, name: name, uid: types.UID("uid-of-" + name)}
}

func (w *world) tenants() tenants {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, tenancyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	return tenants{cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).
		WithIndex(&corev1.ConfigMap{}, bySubject, subjectsOf).Build()}
}

func authority(t *testing.T, name string) pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority(name, 24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// shown is the certificate of an apiserver, which an authority has signed for an hour.
func shown(t *testing.T, ca pki.Authority) *x509.Certificate {
	t.Helper()
	pair, err := ca.Client(apiserverName, []string{"system:masters"}, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	return certificateIn(t, pair.CertPEM)
}

func certificateIn(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestIdentify(t *testing.T) {
	// The same name for all, as if each had been made by the same script.
	red, blue, renewed := authority(t, "kubelet-client-ca"), authority(t, "kubelet-client-ca"), authority(t, "kubelet-client-ca:red")
	// Certificates of a tenant's own authority, also by its CSR API, for the same user.
	own := authority(t, "kubernetes")
	w := &world{t: t}
	tenantRed := w.tenant("red", append(red.CertPEM, renewed.CertPEM...))
	tenantBlue := w.tenant("blue", blue.CertPEM)
	w.tenant("none", nil)
	w.tenant("damaged", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"))
	for name, tc := range map[string]struct {
		certificate *x509.Certificate
		want        tenant
	}{
		"of red":                {shown(t, red), tenantRed},
		"of red's new CA":       {shown(t, renewed), tenantRed},
		"of blue":               {shown(t, blue), tenantBlue},
		"of the tenant's CA":    {shown(t, own), tenant{}},
		"of a CA named as ours": {shown(t, authority(t, "kubelet-client-ca:red")), tenant{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.tenants().identify(t.Context(), tc.certificate, now)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tenant{})); diff != "" {
				t.Error(diff)
			}
			if known := tc.want.uid != ""; known != (err == nil) || !known && !errors.Is(err, errUnknown) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestIdentifyAtItsTime(t *testing.T) {
	red := authority(t, "kubelet-client-ca")
	w := &world{t: t}
	w.tenant("red", red.CertPEM)
	certificate := shown(t, red)
	for name, tc := range map[string]struct {
		at      time.Time
		problem string
	}{
		"valid":       {now.Add(59 * time.Minute), ""},
		"expired":     {now.Add(61 * time.Minute), refusedExpired},
		"before":      {now.Add(-time.Hour), refusedExpired},
		"the CA, too": {now.Add(25 * time.Hour), refusedExpired},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.tenants().identify(t.Context(), certificate, tc.at)
			if tc.problem == "" && err == nil {
				return
			}
			if err == nil || certificateProblem(err) != tc.problem {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestIdentifyForClients: the authority's own certificate, or one of a server,
// is no apiserver's.
func TestIdentifyForClients(t *testing.T) {
	red := authority(t, "kubelet-client-ca")
	w := &world{t: t}
	w.tenant("red", red.CertPEM)
	server, err := red.Server(apiserverName, []string{"localhost"}, nil, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificate := range map[string]*x509.Certificate{
		"a server's": certificateIn(t, server.CertPEM),
		"the CA's":   certificateIn(t, red.CertPEM),
	} {
		if got, err := w.tenants().identify(t.Context(), certificate, now); err == nil {
			t.Errorf("%s is taken for that of %s", name, got.name)
		}
	}
}

// TestIdentifyWhoseCA: an authority counts where vc-manager publishes it, and
// for one tenant.
func TestIdentifyWhoseCA(t *testing.T) {
	red := authority(t, "kubelet-client-ca")
	for name, tc := range map[string]struct {
		change func(*tenancyv1alpha1.VirtualCluster, *corev1.ConfigMap)
		want   error
	}{
		"in a namespace of the tenant": {func(_ *tenancyv1alpha1.VirtualCluster, cm *corev1.ConfigMap) { cm.Namespace += "-default" }, errUnknown},
		"of its predecessor":           {func(vc *tenancyv1alpha1.VirtualCluster, _ *corev1.ConfigMap) { vc.UID = "another" }, errUnknown},
		"of one that is gone":          {func(vc *tenancyv1alpha1.VirtualCluster, _ *corev1.ConfigMap) { vc.Name = "renamed" }, errUnknown},
		"of no tenant":                 {func(_ *tenancyv1alpha1.VirtualCluster, cm *corev1.ConfigMap) { cm.Labels = nil }, errUnknown},
		"without a UID":                {func(_ *tenancyv1alpha1.VirtualCluster, cm *corev1.ConfigMap) { cm.Annotations = nil }, errUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t}
			w.tenant("red", red.CertPEM, tc.change)
			if got, err := w.tenants().identify(t.Context(), shown(t, red), now); !errors.Is(err, tc.want) {
				t.Errorf("got %+v and %v", got, err)
			}
		})
	}
	t.Run("of two tenants", func(t *testing.T) {
		w := &world{t: t}
		w.tenant("red", red.CertPEM)
		w.tenant("blue", red.CertPEM)
		if got, err := w.tenants().identify(t.Context(), shown(t, red), now); !errors.Is(err, errAmbiguous) {
			t.Errorf("got %+v and %v", got, err)
		}
	})
}

// TestIdentifyTakesAuthoritiesAlone: a certificate that is published by mistake
// identifies no tenant.
func TestIdentifyTakesAuthoritiesAlone(t *testing.T) {
	certificate := shown(t, authority(t, "kubernetes"))
	w := &world{t: t}
	w.tenant("red", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	if got, err := w.tenants().identify(t.Context(), certificate, now); !errors.Is(err, errUnknown) {
		t.Errorf("got %+v and %v", got, err)
	}
}
