package hosted_test

import (
	"crypto/tls"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

func TestControlPlanesAreApart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	a := runReady(t, shared, hosted.Spec{Name: "iso", Stock: true, Diagnostics: true})
	b := runReady(t, shared, hosted.Spec{Name: "iso-b"})
	clientA, clientB := clientOf(t, a.RESTConfig()), clientOf(t, b.RESTConfig())

	shouldBeApart(t, a, b)
	makeConfigMap(t, clientA, "only", "of a")
	_, err := configMapValue(t, clientB, "only")
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))

	shared := runReady(t, shared, hosted.Spec{Name: "iso-c", Shared: true})
	for _, path := range []string{"/debug/pprof/heap", "/metrics", "/metrics/slis", "/flagz", "/statusz", "/configz", "/debug/flags/v"} {
		get := func(config *rest.Config) error {
			// A profile as text: for a binary one the runtime opens all that is mapped, [vdso]
			// in the current folder, and Go's cache of test results is then that of the folder.
			_, err := clientOf(t, config).CoreV1().RESTClient().Get().AbsPath(path).Param("debug", "1").DoRaw(t.Context())
			return err
		}
		if path == "/debug/pprof/heap" || path == "/metrics" {
			g.Expect(get(a.RESTConfig())).To(Succeed(), path)
			g.Expect(get(rest.AnonymousClientConfig(a.RESTConfig()))).To(Satisfy(apierrors.IsForbidden), path)
		}
		for _, tenant := range []*hosted.ControlPlane{b, shared} {
			g.Expect(get(tenant.RESTConfig())).To(Satisfy(apierrors.IsNotFound), "%s would show the whole process to %s", path, tenant.Name())
		}
	}
}

// TestTheProcessIsHidden: administrators of a control plane see nothing that
// concerns others, unless it is the super cluster.
func TestTheProcessIsHidden(t *testing.T) {
	t.Parallel()
	for isolation, spec := range map[string]hosted.Spec{"dedicated": {Name: "hidden"}, "shared": {Name: "hidden-shared", Shared: true}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client := clientOf(t, runReady(t, shared, spec).RESTConfig()).CoreV1().RESTClient()
			for _, path := range []string{
				"/metrics", "/metrics/slis", "/debug/pprof/heap", "/debug/flags/v", "/flagz", "/statusz", "/configz", "/logs/",
				"/api/v1/componentstatuses",
			} {
				_, err := client.Get().AbsPath(path).DoRaw(t.Context())
				g.Expect(err).To(Satisfy(apierrors.IsNotFound), path)
			}
			for _, path := range []string{"/", "/api", "/apis", "/version", "/readyz", "/openapi/v2", "/.well-known/openid-configuration"} {
				_, err := client.Get().AbsPath(path).DoRaw(t.Context())
				g.Expect(err).NotTo(HaveOccurred(), path)
			}
		})
	}
}

func TestConnectionsWithoutAServerNameGoToTheDefault(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	super := runReady(t, shared, hosted.Spec{Name: "super"})
	for _, name := range []string{"", "localhost", "kubernetes.default.svc"} {
		config := super.RESTConfig()
		config.ServerName = name
		_, err := clientOf(t, config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred(), "server name %q", name)
	}
	_, err := tls.Dial("tcp", shared.Address(), &tls.Config{ServerName: "absent.vc.internal", InsecureSkipVerify: true})
	g.Expect(err).To(HaveOccurred(), "a control plane that is not there must not be answered for by another")
}

func TestAdminKubeconfigWorks(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "kubeconfig"})
	config, err := clientcmd.RESTConfigFromKubeConfig(plane.AdminKubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clientOf(t, config).RbacV1().ClusterRoles().Get(t.Context(), "cluster-admin", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plane.Version().GitVersion).NotTo(BeEmpty())
}

func TestNamesAreTakenOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "once"})
	_, err := shared.Run(hosted.Spec{Name: "once"})
	g.Expect(err).To(MatchError(ContainSubstring("runs already")))
	stop(t, plane)
	runReady(t, shared, hosted.Spec{Name: "once"})
}

// shouldBeApart asserts that two control planes have objects of the same name
// of their own, and accept neither each other's credentials nor connections.
func shouldBeApart(t *testing.T, a, b *hosted.ControlPlane) {
	t.Helper()
	g := NewWithT(t)
	clientA, clientB := clientOf(t, a.RESTConfig()), clientOf(t, b.RESTConfig())
	makeConfigMap(t, clientA, "same", "of a")
	makeConfigMap(t, clientB, "same", "of b")
	g.Expect(configMapValue(t, clientA, "same")).To(Equal("of a"))
	g.Expect(configMapValue(t, clientB, "same")).To(Equal("of b"))
	shouldReject(t, b, a)
	misled := a.RESTConfig()
	misled.ServerName = b.ServerName()
	_, err := configMapValue(t, clientOf(t, misled), "same")
	g.Expect(err).To(MatchError(ContainSubstring("unknown authority")))
}

// shouldReject asserts that a control plane rejects the credentials of another.
func shouldReject(t *testing.T, plane, other *hosted.ControlPlane) {
	t.Helper()
	intruder := plane.RESTConfig()
	intruder.CertData, intruder.KeyData = other.RESTConfig().CertData, other.RESTConfig().KeyData
	_, err := configMapValue(t, clientOf(t, intruder), "same")
	NewWithT(t).Expect(err).To(Satisfy(apierrors.IsUnauthorized))
}
