package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// etcdBinary is the environment variable with the path of etcd.
const etcdBinary = "VC_ETCD"

// member is an etcd with the certificates of the Secret vc-store-members.
type member struct{ address, dir string }

// startMember starts an etcd, and stops it at the end of the container of specs.
func startMember(ctx context.Context) member {
	GinkgoHelper()
	m := member{address: kit.FreeAddress(ctx), dir: kit.TempDir()}
	m.mount(ctx)
	file := func(name string) string { return filepath.Join(m.dir, name) }
	program, err := gexec.Start(exec.Command(os.Getenv(etcdBinary), "--data-dir="+file("data"), "--logger=zap",
		"--listen-client-urls=https://"+m.address, "--advertise-client-urls=https://"+m.address,
		"--cert-file="+file("tls.crt"), "--key-file="+file("tls.key"), "--trusted-ca-file="+file("ca.crt"), "--client-cert-auth",
		"--listen-peer-urls=http://"+kit.FreeAddress(ctx), "--enable-grpc-gateway=false"), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { program.Terminate().Wait(kit.Soon) })
	return m
}

// mount writes the files of the Secret, as the kubelet does.
func (m member) mount(ctx context.Context) {
	GinkgoHelper()
	for key, content := range storeSecret(ctx, "vc-store-members").Data {
		Expect(os.WriteFile(filepath.Join(m.dir, key), content, 0o600)).To(Succeed())
	}
}

// health returns a function that asks for the health, which includes a read, as
// a client with certificates, and returns what the member serves for the name
// of the first one.
func (m member) health(ctx context.Context, certificates ...tls.Certificate) func() (*x509.Certificate, error) {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(storeSecret(ctx, "vc-store-client").Data["ca.crt"])).To(BeTrue())
	return func() (*x509.Certificate, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{
			ServerName: "vc-store-0." + rbac.Namespace + ".svc", RootCAs: roots, Certificates: certificates,
		}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.address+"/health", nil)
		if err != nil {
			return nil, err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the member responds %s", response.Status)
		}
		return response.TLS.PeerCertificates[0], nil
	}
}

// storeSecret returns a Secret of the store.
func storeSecret(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}}
	Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
	return secret
}

// pairOf returns the certificate of a Secret.
func pairOf(secret *corev1.Secret) tls.Certificate {
	GinkgoHelper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	Expect(err).NotTo(HaveOccurred())
	return pair
}

var _ = Describe("The store of an installation", Ordered, func() {
	var (
		reconciler *store.Reconciler
		etcd       member
		object     = &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: store.Name}}
	)

	ensure := func(ctx context.Context) error {
		_, err := reconciler.Reconcile(ctx, reconcile.Request{})
		return err
	}

	BeforeAll(func(ctx SpecContext) {
		if os.Getenv(etcdBinary) == "" {
			Skip("set " + etcdBinary + " to the path of etcd; make test-integration does")
		}
		account, err := super.ManagerConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		manager, err := client.New(account, client.Options{Scheme: super.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		reconciler = &store.Reconciler{
			Secrets: secrets.Keeper{Client: manager, Live: manager, Owner: rbac.Manager}, Store: store.Defaults(),
		}
		reconciler.Store.Service = types.NamespacedName{Namespace: rbac.Namespace, Name: "vc-store"}
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, object)).To(Succeed()) })
		Eventually(ensure).WithContext(ctx).Should(Succeed()) // once the apiserver knows all of its roles
		etcd = startMember(ctx)
	})

	It("is known by a ControlPlaneStore, of which an admin decides how much is placed there", func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, object, func(s *tenancyv1alpha1.ControlPlaneStore) {
			s.Spec.Unschedulable, s.Spec.Capacity.ControlPlanes = true, new(int32(7))
			s.Spec.CredentialsSecret = "elsewhere"
		})
		Expect(ensure(ctx)).To(Succeed())
		Expect(kit.Get(ctx, super.Client, object)).To(Succeed())
		Expect(object.Spec.Endpoints).To(Equal([]string{"https://vc-store-0.vc-system.svc:2379"}))
		Expect(object.Spec.CredentialsSecret).To(Equal("vc-store-client"))
		Expect(object.Spec.Capacity.Storage.String()).To(Equal("8Gi"))
		Expect(object.Spec.Unschedulable).To(BeTrue())
		Expect(*object.Spec.Capacity.ControlPlanes).To(Equal(int32(7)))
	})

	It("serves the certificate of the client and no other", func(ctx SpecContext) {
		Eventually(etcd.health(ctx, pairOf(storeSecret(ctx, "vc-store-client")))).Should(Not(BeNil()))

		_, err := etcd.health(ctx)()
		Expect(err).To(HaveOccurred(), "without a certificate")
		foreign, err := pki.NewAuthority("virtualcluster-store", time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		pair, err := foreign.Client("vc-host", nil, time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
		Expect(err).NotTo(HaveOccurred())
		_, err = etcd.health(ctx, certificate)()
		Expect(err).To(HaveOccurred(), "with a certificate of another authority of the same name")
	})

	It("does not have the keys of the authorities where etcd or vc-host read", func(ctx SpecContext) {
		key := storeSecret(ctx, "vc-store-authority").Data["ca.key"]
		Expect(key).NotTo(BeEmpty())
		for _, name := range []string{"vc-store-members", "vc-store-client"} {
			for entry, content := range storeSecret(ctx, name).Data {
				Expect(string(content)).NotTo(ContainSubstring(string(key)), name+" "+entry)
			}
		}
	})

	It("serves a renewed certificate without a restart, and accepts that of the client", func(ctx SpecContext) {
		before := pairOf(storeSecret(ctx, "vc-store-members"))
		for _, name := range []string{"vc-store-members", "vc-store-client"} {
			kit.Edit(ctx, super.Client, storeSecret(ctx, name), func(s *corev1.Secret) { delete(s.Data, "tls.crt") })
		}
		Expect(ensure(ctx)).To(Succeed())
		etcd.mount(ctx)
		after := pairOf(storeSecret(ctx, "vc-store-members"))
		Expect(after.Leaf.SerialNumber).NotTo(Equal(before.Leaf.SerialNumber))
		served, err := etcd.health(ctx, pairOf(storeSecret(ctx, "vc-store-client")))()
		Expect(err).NotTo(HaveOccurred())
		Expect(served.SerialNumber).To(Equal(after.Leaf.SerialNumber))
	})

	It("is changed by two replicas without overwriting each other", func(ctx SpecContext) {
		for range 3 {
			Expect(super.Client.Delete(ctx, storeSecret(ctx, "vc-store-authority"))).To(Succeed())
			results := make(chan error, 2)
			for range cap(results) {
				go func() { results <- ensure(ctx) }()
			}
			for range cap(results) {
				Expect(<-results).To(Succeed())
			}
			Eventually(ensure).WithContext(ctx).Should(Succeed())
			client := pairOf(storeSecret(ctx, "vc-store-client"))
			roots := x509.NewCertPool()
			Expect(roots.AppendCertsFromPEM(storeSecret(ctx, "vc-store-authority").Data["ca.crt"])).To(BeTrue())
			_, err := client.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			Expect(err).NotTo(HaveOccurred())
		}
	})

	It("is written to by vc-manager for nothing but this store", func(ctx SpecContext) {
		other := reconciler.Store
		other.Service.Name = "other"
		foreign := &store.Reconciler{Secrets: reconciler.Secrets, Store: other}
		_, err := foreign.Reconcile(ctx, reconcile.Request{})
		Expect(err).To(MatchError(ContainSubstring("create Secret vc-system/other-authority")))
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
	})
})
