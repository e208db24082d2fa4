package hosted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
)

// TestThePlatformHasNoSeat: the watches of the platform take no place of the
// tenant's, and do not need one. The key of its certificate decides, not its
// name.
func TestThePlatformHasNoSeat(t *testing.T) {
	t.Parallel()
	for isolation, spec := range map[string]hosted.Spec{"dedicated": {Name: "seats"}, "shared": {Name: "seats-shared", Shared: true}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			spec.Requests = inflight.Limits{Reads: 5, Writes: 5, Watches: 1}
			plane := runReady(t, shared, spec)
			config, err := clientcmd.RESTConfigFromKubeConfig(plane.PlatformKubeconfig())
			g.Expect(err).NotTo(HaveOccurred())
			platform, admin := clientOf(t, config), clientOf(t, plane.RESTConfig())
			for range 3 {
				g.Expect(openWatch(t, platform)).To(Succeed())
			}
			g.Expect(openWatch(t, admin)).To(Succeed(), "the platform's watches take no place")
			for range 3 {
				g.Expect(openWatch(t, platform)).To(Succeed(), "the platform needs no place")
			}
			g.Expect(plane.Consumption().Requests.Running[inflight.Watch]).To(Equal(1))

			config.CertData, config.KeyData = nil, nil
			config.BearerToken = "vc-platform"
			g.Expect(openWatch(t, clientOf(t, config))).NotTo(Succeed(), "a token")
			impersonated := plane.RESTConfig()
			impersonated.Impersonate.UserName, impersonated.Impersonate.Groups = "vc-platform", []string{"system:masters"}
			for _, impostor := range []kubernetes.Interface{admin, as(t, plane, "vc-platform", "system:masters"), clientOf(t, impersonated)} {
				g.Expect(openWatch(t, impostor)).To(Satisfy(apierrors.IsTooManyRequests))
			}
		})
	}
}

// openWatch opens a watch until the end of the test.
func openWatch(t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	watch, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err == nil {
		t.Cleanup(watch.Stop)
	}
	return err
}
