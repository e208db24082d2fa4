package hosted_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// watchChanges requests the changes of ConfigMaps, and returns the response.
func watchChanges(t *testing.T, config *rest.Config) *http.Response {
	t.Helper()
	g := NewWithT(t)
	tlsConfig, err := rest.TLSConfigFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	query := watchstream.Query([]watchstream.Kind{{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Metadata: true}})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+watchstream.Path+"?"+query.Encode(), http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := (&http.Client{Transport: transport}).Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	return response
}

// namesIn returns the names of the objects in a stream, of those in namespace
// default that are not of Kubernetes itself.
func namesIn(response *http.Response) (<-chan string, <-chan struct{}) {
	names, ended := make(chan string, 100), make(chan struct{})
	go func() { // until the test closes the response
		defer close(ended)
		reader := watchstream.NewReader(response.Body)
		for {
			frame, err := reader.Next()
			if err != nil {
				return
			}
			if frame.Op == watchstream.Put && slices.Contains([]string{"default/first", "default/second", "default/of-another"}, frame.Name) {
				names <- frame.Name
			}
		}
	}()
	return names, ended
}

// TestChanges: the platform watches all changes of a control plane, of either
// isolation, and no other client does: neither an admin, nor a user who has the
// platform's name, nor the platform's certificate for another control plane.
func TestChanges(t *testing.T) {
	t.Parallel()
	for isolation, isShared := range map[string]bool{"dedicated": false, "shared": true} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			changes(t, "changes-"+isolation, isShared)
		})
	}
}

func changes(t *testing.T, name string, isShared bool) {
	t.Helper()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: name, Shared: isShared})
	another := runReady(t, shared, hosted.Spec{Name: name + "-2", Shared: true})
	platform := platformOf(t, plane)
	client := clientOf(t, platform)
	makeConfigMap(t, client, "first", "x")
	makeConfigMap(t, clientOf(t, another.RESTConfig()), "of-another", "x")

	response := watchChanges(t, platform)
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	names, ended := namesIn(response)
	g.Eventually(names, soon).Should(Receive(Equal("default/first")))
	makeConfigMap(t, clientOf(t, another.RESTConfig()), "second", "of another")
	g.Expect(clientOf(t, another.RESTConfig()).CoreV1().ConfigMaps("default").Delete(t.Context(), "second", metav1.DeleteOptions{})).To(Succeed())
	g.Consistently(names, "300ms").ShouldNot(Receive())
	makeConfigMap(t, client, "second", "x")
	g.Eventually(names, soon).Should(Receive(Equal("default/second")))
	g.Expect(plane.Activity().Open).To(BeZero(), "the platform does not keep a control plane awake")

	g.Expect(watchChanges(t, plane.RESTConfig()).StatusCode).To(Equal(http.StatusNotFound))
	pair, err := plane.NewClientCertificate("vc-platform", []string{"system:masters"})
	g.Expect(err).NotTo(HaveOccurred())
	imposter := rest.CopyConfig(plane.RESTConfig())
	imposter.CertData, imposter.KeyData = pair.CertPEM, pair.KeyPEM
	g.Expect(watchChanges(t, imposter).StatusCode).To(Equal(http.StatusNotFound))
	g.Expect(watchChanges(t, rest.AnonymousClientConfig(platform)).StatusCode).To(Equal(http.StatusForbidden))
	foreign := rest.CopyConfig(platform)
	elsewhere := platformOf(t, another)
	foreign.CertData, foreign.KeyData = elsewhere.CertData, elsewhere.KeyData
	g.Expect(watchChanges(t, foreign).StatusCode).To(Equal(http.StatusUnauthorized))
	impersonating := rest.CopyConfig(plane.RESTConfig())
	impersonating.Impersonate.UserName = "vc-platform"
	g.Expect(watchChanges(t, impersonating).StatusCode).To(BeElementOf(http.StatusForbidden, http.StatusNotFound))

	stop(t, plane)
	g.Eventually(ended, soon).Should(BeClosed(), "a control plane that has stopped has no changes")
}

func platformOf(t *testing.T, plane *hosted.ControlPlane) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(plane.PlatformKubeconfig())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return config
}
