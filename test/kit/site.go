package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// The environment variables with the paths of the programs of a site.
const (
	etcdBinary    = "VC_ETCD"
	managerBinary = "VC_MANAGER"
	hostBinary    = "VC_HOST"
)

// Site is a super cluster with vc-manager, vc-host and a store, each in a process
// of its own and with the permissions of its service account.
type Site struct {
	*local.SuperCluster

	// Service leads to the replicas of vc-host.
	Service *Balancer
	// Store is the etcd.
	Store *gexec.Session

	etcd []string // the arguments of the store
	// stores end after the other programs, which use them.
	stores, programs []*gexec.Session
}

// StartSite starts a site without replicas of vc-host, until the end of the
// container of specs. It skips the specs if a program was not built.
func StartSite(ctx context.Context) *Site {
	GinkgoHelper()
	for _, binary := range []string{etcdBinary, managerBinary, hostBinary} {
		if os.Getenv(binary) == "" {
			Skip("set " + binary + "; make test-integration does")
		}
	}
	started, err := local.Start(ctx, TempDir(), "--manager=false", "--syncer=false", "--agent=false", "--nodes=1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(started.Stop()).To(Succeed()) })
	s := &Site{SuperCluster: started, Service: newBalancer(ctx)}
	DeferCleanup(func() {
		for _, program := range slices.Backward(slices.Concat(s.stores, s.programs)) {
			program.Terminate().Wait(2 * Soon)
		}
	})
	manager, err := s.ManagerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(local.WriteKubeconfig(s.File("manager.kubeconfig"), manager)).To(Succeed())
	host, err := s.HostConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(local.WriteKubeconfig(s.File("host.kubeconfig"), host)).To(Succeed())
	s.makeStore(ctx)
	s.StartStore()
	s.start("vc-manager", os.Getenv(managerBinary), "--kubeconfig="+s.File("manager.kubeconfig"), "--host-service-account="+rbac.Namespace+"/"+rbac.Host,
		"--default-provisioner=Hosted", "--health-probe-bind-address=0")
	return s
}

// File returns the path of a file of the site.
func (s *Site) File(name string) string { return filepath.Join(s.Dir, name) }

// start starts a program, which is terminated with the site.
func (s *Site) start(name, binary string, args ...string) *gexec.Session {
	GinkgoHelper()
	session := s.run(name, binary, args...)
	s.programs = append(s.programs, session)
	return session
}

// startStore starts an etcd, which is terminated with the site.
func (s *Site) startStore(name string, args ...string) *gexec.Session {
	GinkgoHelper()
	session := s.run(name, os.Getenv(etcdBinary), args...)
	s.stores = append(s.stores, session)
	return session
}

// run runs a program. It collects garbage as it does elsewhere: the specs of a site
// measure memory.
func (s *Site) run(name, binary string, args ...string) *gexec.Session {
	GinkgoHelper()
	out := gexec.NewPrefixedWriter("["+name+"] ", GinkgoWriter)
	command := exec.Command(binary, args...)
	command.Env = local.Environment("GOGC=")
	session, err := gexec.Start(command, out, out)
	Expect(err).NotTo(HaveOccurred())
	return session
}

// makeStore makes certificates of an etcd, and the ControlPlaneStore.
func (s *Site) makeStore(ctx context.Context) {
	GinkgoHelper()
	address := FreeAddress(ctx)
	now := time.Now()
	authority, err := pki.NewAuthority("store", time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	member, err := authority.Server("etcd", nil, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	user, err := authority.Client("vc-host", nil, time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	for name, data := range map[string][]byte{"store-ca.crt": authority.CertPEM, "store.crt": member.CertPEM, "store.key": member.KeyPEM} {
		Expect(os.WriteFile(s.File(name), data, 0o600)).To(Succeed())
	}
	s.etcd = s.etcdArguments(ctx, "store", address)
	Create(ctx, s.Client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-store-client"},
		Data:       map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": user.CertPEM, "tls.key": user.KeyPEM},
	}, &tenancyv1alpha1.ControlPlaneStore{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       tenancyv1alpha1.ControlPlaneStoreSpec{Endpoints: []string{"https://" + address}, CredentialsSecret: "vc-store-client"},
	})
}

// etcdArguments returns the arguments of an etcd with the certificates of the
// store.
func (s *Site) etcdArguments(ctx context.Context, dir, address string) []string {
	arguments := []string{
		"--data-dir=" + s.File(dir), "--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + address,
		"--cert-file=" + s.File("store.crt"), "--key-file=" + s.File("store.key"), "--trusted-ca-file=" + s.File("store-ca.crt"),
		"--client-cert-auth", "--listen-peer-urls=http://" + FreeAddress(ctx),
	}
	if os.Getenv(local.Durable) == "" {
		arguments = append(arguments, "--unsafe-no-fsync") // a killed process loses nothing
	}
	return arguments
}

// AddStore starts another etcd with a ControlPlaneStore and additional flags, and
// waits until vc-host is connected to it.
func (s *Site) AddStore(ctx context.Context, name string, flags ...string) *gexec.Session {
	GinkgoHelper()
	return s.addStore(ctx, name, nil, flags...)
}

// AddLimitedStore adds one that is said to have a capacity.
func (s *Site) AddLimitedStore(ctx context.Context, name string, capacity resource.Quantity) {
	GinkgoHelper()
	s.addStore(ctx, name, &capacity)
}

func (s *Site) addStore(ctx context.Context, name string, capacity *resource.Quantity, flags ...string) *gexec.Session {
	GinkgoHelper()
	address := FreeAddress(ctx)
	session := s.startStore("etcd-"+name, append(s.etcdArguments(ctx, "store-"+name, address), flags...)...)
	store := &tenancyv1alpha1.ControlPlaneStore{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       tenancyv1alpha1.ControlPlaneStoreSpec{Endpoints: []string{"https://" + address}, CredentialsSecret: "vc-store-client"},
	}
	store.Spec.Capacity.Storage = capacity
	Create(ctx, s.Client, store)
	Eventually(Read(ctx, s.Client, store)).WithTimeout(6 * Soon).Should(HaveField("Status.Conditions", ContainElement(
		HaveField("Status", metav1.ConditionTrue))))
	return session
}

// StoredKeys returns a function that returns how many keys of a control plane a
// ControlPlaneStore has.
func (s *Site) StoredKeys(ctx context.Context, name, controlPlane string) func() (int64, error) {
	GinkgoHelper()
	store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(Get(ctx, s.Client, store)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: store.Spec.CredentialsSecret}}
	Expect(Get(ctx, s.Client, secret)).To(Succeed())
	user, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	Expect(err).NotTo(HaveOccurred())
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(secret.Data["ca.crt"])
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authority, Certificates: []tls.Certificate{user}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	DeferCleanup(transport.CloseIdleConnections)
	return func() (int64, error) { return local.CountKeys(ctx, transport, store.Spec.Endpoints[0], controlPlane) }
}

// StartStore starts the store.
func (s *Site) StartStore() {
	GinkgoHelper()
	s.Store = s.startStore("etcd", s.etcd...)
}

// HostReplica is a running replica of vc-host.
type HostReplica struct {
	*gexec.Session

	// Name is that of the replica, Address is where it serves clients, and Probes
	// where it responds to probes.
	Name, Address, Probes string
}

// StartReplica starts a replica behind the service, with additional flags.
func (s *Site) StartReplica(ctx context.Context, name string, flags ...string) *HostReplica {
	GinkgoHelper()
	address, probes := FreeAddress(ctx), FreeAddress(ctx)
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	args := append([]string{
		"--kubeconfig=" + s.File("host.kubeconfig"), "--listen=127.0.0.1", "--port=" + port, "--peer-port=0", "--replica=" + name,
		"--advertise-address=" + s.Service.Address, "--health-probe-bind-address=" + probes, "--metrics-bind-address=0",
	}, flags...)
	r := &HostReplica{Name: name, Address: address, Probes: probes, Session: s.start(name, os.Getenv(hostBinary), args...)}
	Eventually(Probed(ctx, probes, "/readyz")).Should(Equal(http.StatusOK))
	s.Service.Add(address)
	return r
}
