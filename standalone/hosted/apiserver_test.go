package hosted

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// answering returns an apiServer whose health is what the handler answers.
func answering(t *testing.T, handler http.HandlerFunc) *apiServer {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &apiServer{client: client, done: make(chan struct{}), bootstrap: &bootstrap{done: make(chan struct{})}}
}

// TestAwaitReady: a start that does not succeed says what it waited for.
func TestAwaitReady(t *testing.T) {
	t.Parallel()
	tooLate := errors.New("not ready after a while")
	failing := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "[-]poststarthook/crd-informer-synced failed", http.StatusInternalServerError)
	}
	healthy := func(http.ResponseWriter, *http.Request) {}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		prepare func(*apiServer)
		want    []string
	}{
		"everything is ready":             {handler: healthy, prepare: func(s *apiServer) { close(s.bootstrap.done) }},
		"the server does not get healthy": {handler: failing, want: []string{tooLate.Error(), "last response of /readyz", "crd-informer-synced failed"}},
		"the server ends": {handler: failing, want: []string{"the apiserver exited: port lost"}, prepare: func(s *apiServer) {
			s.err = errors.New("port lost")
			close(s.done)
		}},
		"the server ends in silence":   {handler: failing, want: []string{"exited by itself"}, prepare: func(s *apiServer) { close(s.done) }},
		"the bootstrap does not end":   {handler: healthy, want: []string{tooLate.Error()}},
		"the bootstrap has not worked": {handler: healthy, want: []string{"a policy forbids it"}, prepare: func(s *apiServer) { s.bootstrap.fail("a policy forbids it") }},
		"the server gets healthy late": {handler: healthyAfter(3), prepare: func(s *apiServer) { close(s.bootstrap.done) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			server := answering(t, test.handler)
			if test.prepare != nil {
				test.prepare(server)
			}
			patience := time.Minute
			if slices.Contains(test.want, tooLate.Error()) {
				patience = 3 * time.Second // in which the server answers at least once
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, tooLate)
			defer cancel()
			err := server.awaitReady(ctx)
			if len(test.want) == 0 {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, want := range test.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}

func healthyAfter(failures int32) http.HandlerFunc {
	var asked atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= failures {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

// fail runs a bootstrap whose hooks fail, among others that do not.
func (b *bootstrap) fail(why string) {
	b.hooks = map[string]genericapiserver.PostStartHookFunc{
		"works": func(genericapiserver.PostStartHookContext) error { return nil },
		"rbac":  func(genericapiserver.PostStartHookContext) error { return errors.New(why) },
		"class": func(genericapiserver.PostStartHookContext) error { return errors.New("also " + why) },
	}
	b.start(context.Background(), nil)
	<-b.done
}

func TestBootstrapNamesItsHooks(t *testing.T) {
	g := NewWithT(t)
	b := &bootstrap{done: make(chan struct{})}
	b.fail("forbidden")
	g.Expect(b.err).To(MatchError(And(
		ContainSubstring("run the bootstrap hook rbac: forbidden"), ContainSubstring("run the bootstrap hook class: also forbidden"),
		Not(ContainSubstring("works")),
	)))
	config := genericapiserver.NewConfig(scheme.Codecs)
	taken, err := takeOverHooks(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(taken.hooks).To(HaveLen(2))
	for name := range taken.hooks {
		g.Expect(config.DisabledPostStartHooks.Has(name)).To(BeTrue(), "%s would run twice", name)
	}
}

func TestServerOptions(t *testing.T) {
	g := NewWithT(t)
	creds := load(t, t.TempDir(), "a")
	spec := Spec{Name: "red", ClusterDomain: "red.example", ServiceCIDR: "10.7.0.0/16"}.withDefaults(DefaultServiceCIDR)
	tenant, err := serverOptions(spec, creds, "unix:///etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tenant.Etcd.StorageConfig.Prefix).To(Equal("/controlplanes/red"))
	g.Expect(tenant.Etcd.StorageConfig.Transport.ServerList).To(ConsistOf("unix:///etcd"))
	g.Expect(tenant.Etcd.StorageConfig.CompactionInterval).NotTo(BeZero(), "caches would not learn what the host compacts")
	g.Expect(tenant.Authentication.ServiceAccounts.Issuers).To(ConsistOf("https://kubernetes.default.svc.red.example"))
	g.Expect(tenant.Authorization.Modes).To(ConsistOf(modes.ModeRBAC))
	g.Expect(tenant.Admission.GenericAdmission.EnablePlugins).To(BeEmpty())
	g.Expect(tenant.KubeletConfig.TLSClientConfig.CAFile).To(BeEmpty())
	g.Expect(tenant.KubeletConfig.PreferredAddressTypes).To(HaveExactElements("InternalIP", "ExternalIP", "Hostname"))
	g.Expect(tenant.SecureServing.BindPort).To(BeZero(), "connections come through the inlet alone")
	g.Expect(tenant.Features.EnableProfiling).To(BeFalse())

	spec.NodeAuthorization, spec.SeparateKubeletClientCA, spec.Diagnostics, spec.KubeletCA = true, true, true, []byte("PEM")
	super, err := serverOptions(spec, creds, "unix:///etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(super.Authorization.Modes).To(HaveExactElements(modes.ModeNode, modes.ModeRBAC))
	g.Expect(super.Admission.GenericAdmission.EnablePlugins).To(ConsistOf("NodeRestriction"))
	g.Expect(super.KubeletConfig.TLSClientConfig.CAFile).To(Equal(creds.path(kubeletCAFile)))
	g.Expect(super.KubeletConfig.PreferredAddressTypes[0]).To(Equal("Hostname"))
	g.Expect(super.Features.EnableProfiling).To(BeTrue())

	creds.authority.CertPEM = []byte("damaged")
	_, err = serverOptions(spec, creds, "")
	g.Expect(err).To(MatchError(ContainSubstring(creds.path(authorityFile))))
}

// TestDialItself: the client for webhooks that the apiserver serves has its
// credentials, so that no redirect may lead elsewhere.
func TestDialItself(t *testing.T) {
	g := NewWithT(t)
	itself, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer itself.Close()
	dial, err := dialItself("https://"+itself.Addr().String(), egress.Closed{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, address := range []string{itself.Addr().String(), "kubernetes.default.svc:443"} {
		conn, err := dial(t.Context(), "tcp", address)
		g.Expect(err).NotTo(HaveOccurred(), address)
		g.Expect(conn.RemoteAddr().String()).To(Equal(itself.Addr().String()))
		g.Expect(conn.Close()).To(Succeed())
	}
	for _, address := range []string{"127.0.0.1:1", "kubernetes.default.svc:80", "kubernetes.default:443", "example.com:443"} {
		_, err := dial(t.Context(), "tcp", address)
		g.Expect(err).To(MatchError(ContainSubstring("not allowed")), address)
	}
	_, err = dialItself("://", egress.Closed{})
	g.Expect(err).To(MatchError(ContainSubstring("the apiserver's own address")))
}
