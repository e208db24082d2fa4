package integration

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	gomegatypes "github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// hostBinary is the environment variable with the path of vc-host.
const hostBinary = "VC_HOST"

// site is a super cluster with vc-manager, vc-host and a store, each in a process
// of its own and with the permissions of its service account.
type site struct {
	*local.SuperCluster

	etcd     []string // the arguments of the store
	store    *gexec.Session
	service  *balancer
	programs []*gexec.Session
}

// startSite starts a site without replicas of vc-host, until the end of the
// container of specs.
func startSite(ctx context.Context) *site {
	GinkgoHelper()
	started, err := local.Start(ctx, kit.TempDir(), "--manager=false", "--syncer=false", "--agent=false", "--nodes=1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(started.Stop()).To(Succeed()) })
	s := &site{SuperCluster: started, service: newBalancer(ctx)}
	DeferCleanup(func() {
		for _, program := range slices.Backward(s.programs) {
			program.Terminate().Wait(2 * kit.Soon)
		}
	})
	manager, err := s.ManagerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(local.WriteKubeconfig(s.file("manager.kubeconfig"), manager)).To(Succeed())
	host, err := s.HostConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(local.WriteKubeconfig(s.file("host.kubeconfig"), host)).To(Succeed())
	s.makeStore(ctx)
	s.startStore()
	s.start("vc-manager", os.Getenv(managerBinary), "--kubeconfig="+s.file("manager.kubeconfig"), "--host-service-account="+rbac.Namespace+"/"+rbac.Host,
		"--default-provisioner=Hosted", "--health-probe-bind-address=0")
	return s
}

func (s *site) file(name string) string { return filepath.Join(s.Dir, name) }

// start starts a program, which is terminated with the site.
func (s *site) start(name, binary string, args ...string) *gexec.Session {
	GinkgoHelper()
	out := gexec.NewPrefixedWriter("["+name+"] ", GinkgoWriter)
	session, err := gexec.Start(exec.Command(binary, args...), out, out)
	Expect(err).NotTo(HaveOccurred())
	s.programs = append(s.programs, session)
	return session
}

// makeStore makes certificates of an etcd, and the ControlPlaneStore.
func (s *site) makeStore(ctx context.Context) {
	GinkgoHelper()
	address := freeAddress(ctx)
	now := time.Now()
	authority, err := pki.NewAuthority("store", time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	member, err := authority.Server("etcd", nil, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	user, err := authority.Client("vc-host", nil, time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	for name, data := range map[string][]byte{"store-ca.crt": authority.CertPEM, "store.crt": member.CertPEM, "store.key": member.KeyPEM} {
		Expect(os.WriteFile(s.file(name), data, 0o600)).To(Succeed())
	}
	s.etcd = []string{
		"--data-dir=" + s.file("store"), "--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + address,
		"--cert-file=" + s.file("store.crt"), "--key-file=" + s.file("store.key"), "--trusted-ca-file=" + s.file("store-ca.crt"),
		"--client-cert-auth", "--listen-peer-urls=http://" + freeAddress(ctx),
	}
	kit.Create(ctx, s.Client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-store-client"},
		Data:       map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": user.CertPEM, "tls.key": user.KeyPEM},
	}, &tenancyv1alpha1.ControlPlaneStore{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       tenancyv1alpha1.ControlPlaneStoreSpec{Endpoints: []string{"https://" + address}, CredentialsSecret: "vc-store-client"},
	})
}

func (s *site) startStore() {
	GinkgoHelper()
	s.store = s.start("etcd", os.Getenv(etcdBinary), s.etcd...)
}

// hostReplica is a running replica of vc-host.
type hostReplica struct {
	*gexec.Session
	name, address string
}

// startReplica starts a replica behind the service.
func (s *site) startReplica(ctx context.Context, name string) *hostReplica {
	GinkgoHelper()
	address, probes := freeAddress(ctx), freeAddress(ctx)
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	r := &hostReplica{name: name, address: address, Session: s.start(name, os.Getenv(hostBinary), "--kubeconfig="+s.file("host.kubeconfig"),
		"--listen=127.0.0.1", "--port="+port, "--peer-port=0", "--replica="+name, "--advertise-address="+s.service.address,
		"--health-probe-bind-address="+probes, "--metrics-bind-address=0")}
	Eventually(probed(ctx, probes, "/readyz")).Should(Equal(http.StatusOK))
	s.service.add(address)
	return r
}

// balancer passes connections to the replicas in turn, as a Service does.
type balancer struct {
	address string

	mu        sync.Mutex
	endpoints []string
	next      int
}

// newBalancer opens the port of a service, until the end of the container of
// specs.
func newBalancer(ctx context.Context) *balancer {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s := &balancer{address: listener.Addr().String()}
	var work sync.WaitGroup
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			work.Go(func() { s.pass(serving, conn) })
		}
	})
	DeferCleanup(func() {
		stop()
		_ = listener.Close()
		work.Wait()
	})
	return s
}

func (s *balancer) pass(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	other, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.pick())
	if err != nil {
		return
	}
	defer other.Close()
	defer context.AfterFunc(ctx, func() { _ = errors.Join(conn.Close(), other.Close()) })()
	var copying sync.WaitGroup
	copying.Go(func() { pour(other, conn) })
	copying.Go(func() { pour(conn, other) })
	copying.Wait()
}

func pour(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	_, _ = to.(*net.TCPConn).ReadFrom(from)
}

func (s *balancer) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) == 0 {
		return ""
	}
	s.next++
	return s.endpoints[s.next%len(s.endpoints)]
}

func (s *balancer) add(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = append(s.endpoints, address)
}

func (s *balancer) remove(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(s.endpoints, func(a string) bool { return a == address })
}

// lister lists at an interval until stop, and counts failures. Gap is the longest
// time between successes.
type lister struct {
	stop func()

	mu        sync.Mutex
	succeeded int
	failures  []error
	last      time.Time
	gap       time.Duration
}

func startLister(ctx context.Context, c kubernetes.Interface) *lister {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &lister{last: time.Now()}
	var work sync.WaitGroup
	work.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
				if ctx.Err() == nil {
					l.record(err)
				}
			}
		}
	})
	l.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
	return l
}

func (l *lister) record(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, err)
		return
	}
	l.succeeded++
	l.gap, l.last = max(l.gap, time.Since(l.last)), time.Now()
}

// lists returns how many lists have succeeded.
func (l *lister) lists() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.succeeded
}

// haveHealth succeeds for a store whose health has a reason.
func haveHealth(reason string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ConsistOf(And(
		HaveField("Type", tenancyv1alpha1.ConditionStoreHealthy), HaveField("Reason", reason),
	)))
}

var _ = Describe("Hosts of an installation", Ordered, func() {
	const later = 6 * kit.Soon
	var (
		super    *site
		replicas = map[string]*hostReplica{}
		red      = kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" })
		plane    = &tenancyv1alpha1.HostedControlPlane{}
		tenants  kubernetes.Interface
	)

	start := func(ctx context.Context, name string) {
		GinkgoHelper()
		replicas[name] = super.startReplica(ctx, name)
	}
	// leave takes a replica out of the service, as the super cluster does with a
	// pod that is deleted.
	leave := func(name string) *hostReplica {
		GinkgoHelper()
		leaving := replicas[name]
		Expect(leaving).NotTo(BeNil(), name)
		delete(replicas, name)
		super.service.remove(leaving.address)
		return leaving
	}
	servedBy := func(ctx context.Context) func() (string, error) {
		return func() (string, error) {
			err := super.Client.Get(ctx, client.ObjectKeyFromObject(plane), plane)
			return plane.Status.Host, err
		}
	}

	BeforeAll(func(ctx SpecContext) {
		for _, binary := range []string{etcdBinary, managerBinary, hostBinary} {
			if os.Getenv(binary) == "" {
				Skip("set " + binary + "; make test-integration does")
			}
		}
		super = startSite(ctx)
		start(ctx, "host-a")
		kit.Create(ctx, super.Client, red)
		Eventually(kit.Read(ctx, super.Client, red)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		Expect(kit.Get(ctx, super.Client, red)).To(Succeed())
		plane.Namespace, plane.Name = red.Status.ClusterNamespace, tenancyv1alpha1.HostedControlPlaneName
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[names.AdminKubeconfigKey])
		Expect(err).NotTo(HaveOccurred())
		config.QPS, config.Timeout = -1, kit.Soon
		tenants, err = kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(2*later))

	It("run a control plane with its keys in Secrets of its root namespace", func(ctx SpecContext) {
		Expect(tenants.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})).NotTo(BeNil())
		Expect(red.Status.Endpoint).To(Equal("https://" + super.service.address))
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}}
		Expect(kit.Get(ctx, super.Client, keys)).To(Succeed())
		Expect(keys.Data).To(And(HaveKey("ca.pem"), HaveKey("sa.key")))
		Expect(servedBy(ctx)()).To(Equal("host-a"))
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		Eventually(kit.Read(ctx, super.Client, store)).Should(haveHealth(tenancyv1alpha1.ReasonHealthy))
	})

	It("have rights on the Secrets of its root namespace, and on no others", func(ctx SpecContext) {
		account, err := clientcmd.BuildConfigFromFlags("", super.file("host.kubeconfig"))
		Expect(err).NotTo(HaveOccurred())
		host, err := local.NewClient(account)
		Expect(err).NotTo(HaveOccurred())
		for right, want := range map[authorizationv1.ResourceAttributes]bool{
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}: true,
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}:            false,
			{Verb: "list", Resource: "secrets", Namespace: plane.Namespace}:                                              false,
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace + "-default", Name: "any"}:                     false,
			{Verb: "create", Resource: "secrets", Namespace: plane.Namespace + "-default"}:                               false,
			{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: tenancyv1alpha1.HostedControlPlaneKeys}:   false,
			{Verb: "create", Resource: "pods", Namespace: rbac.Namespace}:                                                false,
			{Verb: "patch", Group: "tenancy.x-k8s.io", Resource: "virtualclusters", Namespace: red.Namespace}:            false,
		} {
			Expect(local.Allowed(ctx, host, right)).To(Equal(want), "%+v", right)
		}
	})

	It("hand it over, while a client that lists ten times a second sees no failure", func(ctx SpecContext) {
		listing := startLister(ctx, tenants)
		DeferCleanup(listing.stop)
		start(ctx, "host-b")
		start(ctx, "host-c")
		for range 3 {
			from, err := servedBy(ctx)()
			Expect(err).NotTo(HaveOccurred())
			leaving := leave(from)
			leaving.Terminate()
			Eventually(leaving).WithTimeout(later).Should(gexec.Exit(0))
			Eventually(servedBy(ctx)).Should(Not(Equal(from)))
			before := listing.lists()
			Eventually(listing.lists).Should(BeNumerically(">", before+5))
			start(ctx, from+"-again")
		}
		listing.stop()
		AddReportEntry("hand-over: lists, longest gap", []any{listing.succeeded, listing.gap.String()})
		Expect(listing.failures).To(BeEmpty())
	}, SpecTimeout(4*later))

	It("serve it again when the replica that serves it is killed", func(ctx SpecContext) {
		from := ""
		Eventually(func() error { // also the replica that has come last
			was := from
			var err error
			if from, err = servedBy(ctx)(); err == nil && from != was {
				err = errors.New("it is being handed over")
			}
			return err
		}).WithContext(ctx).WithPolling(5 * time.Second).Should(Succeed())
		listing := startLister(ctx, tenants)
		DeferCleanup(listing.stop)
		Eventually(listing.lists).Should(BeNumerically(">", 3))
		leave(from).Kill().Wait(kit.Soon)
		before := listing.lists()
		Eventually(listing.lists).WithTimeout(later).Should(BeNumerically(">", before+5))
		Expect(servedBy(ctx)()).NotTo(Equal(from))
		listing.stop()
		AddReportEntry("killed: longest gap", listing.gap.String())
	}, SpecTimeout(2*later))

	It("report a store that does not respond, and continue when it does", func(ctx SpecContext) {
		super.store.Terminate().Wait(kit.Soon)
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		Eventually(kit.Read(ctx, super.Client, store)).WithTimeout(later).Should(haveHealth(tenancyv1alpha1.ReasonStoreUnreachable))
		super.startStore()
		Eventually(func() error {
			_, err := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		}).WithTimeout(later).Should(Succeed())
		Eventually(kit.Read(ctx, super.Client, store)).WithTimeout(later).Should(haveHealth(tenancyv1alpha1.ReasonHealthy))
	}, SpecTimeout(4*later))

	It("keep a control plane whose object and keys are deleted by hand", func(ctx SpecContext) {
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}}
		Expect(super.Client.Delete(ctx, keys)).To(Succeed())
		Expect(super.Client.Delete(ctx, plane)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, plane)).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Consistently(func() error {
			_, err := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		}, "3s").Should(Succeed())
		Expect(kit.Get(ctx, super.Client, keys)).To(Succeed())
		Expect(kit.Get(ctx, super.Client, red)).To(Succeed())
		Expect(red).To(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	}, SpecTimeout(2*later))

	It("delete all of it", func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, red)).To(Succeed())
		Eventually(func() error {
			return super.Client.Get(ctx, client.ObjectKeyFromObject(red), red)
		}).WithTimeout(later).Should(MatchError(ContainSubstring("not found")))
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(plane.Namespace))
		for name, each := range replicas {
			each.Terminate()
			Eventually(each).WithTimeout(later).Should(gexec.Exit(0), name)
			Expect(strings.Contains(string(each.Out.Contents()), "PRIVATE KEY")).To(BeFalse(), "a key is in the log")
		}
	}, SpecTimeout(2*later))
})
