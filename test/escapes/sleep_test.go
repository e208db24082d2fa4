package escapes

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// idle is the time in seconds after which control planes sleep here.
const idle = 10

// sleeping makes a tenant whose control plane sleeps when it is not used.
func sleeping(vc *tenancyv1alpha1.VirtualCluster) {
	vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Sleep: &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: new(int32(idle))}}
}

// shouldSleep waits until the control plane of a tenant sleeps.
func shouldSleep(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	Eventually(kit.Read(ctx, super.Client, t.VC)).WithTimeout(3 * kit.Soon).Should(And(
		kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle),
		kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonAsleep)))
}

// isAwake reports whether the status of a tenant says that it is awake.
func isAwake(ctx context.Context, t *local.Tenant) func() (bool, error) {
	return func() (bool, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake), err
	}
}

// poll sends a GET request four times a second until the function that it returns
// is called, which returns the number of successful requests.
func poll(ctx context.Context, config *rest.Config, path string) (stop func() int64) {
	GinkgoHelper()
	sender, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(ctx)
	var succeeded atomic.Int64
	var polling sync.WaitGroup
	polling.Go(func() {
		ticker := time.NewTicker(time.Second / 4)
		defer ticker.Stop()
		for {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil) // the URL is valid
			if response, err := sender.Do(request); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					succeeded.Add(1)
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() int64 {
		cancel()
		polling.Wait()
		return succeeded.Load()
	}
}

var _ = Describe("The sleep of hosted control planes", Ordered, func() {
	var mallory, honest *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		dedicated := kit.WithIsolation(tenancyv1alpha1.IsolationDedicated)
		mallory, honest = tenant(ctx, sleeping, dedicated), tenant(ctx, sleeping, dedicated)
	})

	attack("requests without credentials that keep a control plane awake", "idea: /version is open to anonymous clients", func(ctx SpecContext) {
		// It may have slept as soon as it was synced.
		Eventually(func() error { return kit.Get(ctx, honest.Client, kit.Namespace("default")) }).Should(Succeed())
		stop := poll(ctx, rest.AnonymousClientConfig(honest.Config), "/version")
		Eventually(isAwake(ctx, honest)).Should(BeTrue())
		shouldSleep(ctx, honest)
		Expect(stop()).To(BeNumerically(">=", idle/2), "the control plane did not answer")
	})

	attack("the identity of the platform, so that use does not count", "idea: the platform's own requests do not count as use", func(ctx SpecContext) {
		impostor := rest.CopyConfig(mallory.Config)
		impostor.Impersonate = rest.ImpersonationConfig{UserName: "vc-platform", Groups: []string{"system:masters"}}
		shouldSleep(ctx, mallory) // it was not used, and is not about to sleep then
		defer poll(ctx, impostor, "/api/v1/pods")()
		Eventually(isAwake(ctx, mallory)).Should(BeTrue())
		Consistently(isAwake(ctx, mallory)).WithTimeout((idle + 10) * time.Second).Should(BeTrue())
	})

	attack("requests to a control plane that sleeps with the credentials of another tenant, so that it wakes", "idea: its name is no secret", func(ctx SpecContext) {
		anonymous := rest.AnonymousClientConfig(honest.Config)
		certificate := rest.CopyConfig(anonymous)
		certificate.CertData, certificate.KeyData = mallory.Config.CertData, mallory.Config.KeyData
		token, own := withToken(honest.Config, tokenOf(ctx, mallory)), withToken(honest.Config, tokenOf(ctx, honest))
		Eventually(isAwake(ctx, honest)).Should(BeTrue())
		shouldSleep(ctx, honest)
		for _, config := range []*rest.Config{anonymous, certificate, token} {
			defer poll(ctx, config, "/version")()
		}
		Consistently(kit.Read(ctx, super.Client, honest.VC)).WithTimeout(idle * time.Second).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle))
		begin := time.Now()
		client, err := kubernetes.NewForConfig(own)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred(), "its own token wakes it")
		Expect(time.Since(begin)).To(BeNumerically("<", kit.Soon))
		Eventually(kit.Read(ctx, super.Client, honest.VC)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, tenancyv1alpha1.ReasonConnection))
	})

	attack("thousands of connections to control planes that sleep, so that others do not wake", "idea: connections are held", func(ctx SpecContext) {
		const number = 2000
		shouldSleep(ctx, mallory)
		shouldSleep(ctx, honest)
		server, err := url.Parse(mallory.Config.Host)
		Expect(err).NotTo(HaveOccurred())
		var flooding sync.WaitGroup
		flood, cancel := context.WithCancel(ctx)
		defer flooding.Wait()
		defer cancel()
		for range number {
			flooding.Go(func() {
				dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{
					ServerName: mallory.Config.ServerName, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
				}}
				if conn, err := dialer.DialContext(flood, "tcp", server.Host); err == nil {
					_ = conn.Close()
				}
			})
		}
		begin := time.Now()
		// Clients give up a handshake after 10 seconds, and try again.
		Eventually(func() error { return kit.Get(ctx, honest.Client, kit.Namespace("default")) }).WithTimeout(2 * kit.Soon).Should(Succeed())
		GinkgoWriter.Printf("the honest tenant is served after %s\n", time.Since(begin).Round(time.Millisecond))
	})
})
