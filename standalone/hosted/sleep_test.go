package hosted_test

import (
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
)

// sleepUntilWoken puts a control plane to sleep. The channel has an element for
// each time that it is woken.
func sleepUntilWoken(t *testing.T, name string) <-chan struct{} {
	t.Helper()
	woken := make(chan struct{}, 100)
	NewWithT(t).Expect(shared.Sleep(t.Context(), name, func() { woken <- struct{}{} })).To(Succeed())
	t.Cleanup(func() { shared.CloseRoute(name) })
	return woken
}

// TestARequestWakes: a request to a control plane that sleeps is held, and
// answered when the control plane runs again.
func TestARequestWakes(t *testing.T) {
	t.Parallel()
	for isolation, spec := range map[string]hosted.Spec{"dedicated": {Name: "sleepy"}, "shared": {Name: "sleepy-shared", Shared: true}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			wakeByRequest(t, spec)
		})
	}
}

func wakeByRequest(t *testing.T, spec hosted.Spec) {
	t.Helper()
	g := NewWithT(t)
	plane := runReady(t, shared, spec)
	config := plane.RESTConfig()
	client := clientOf(t, config)
	makeConfigMap(t, client, "kept", "yes")

	woken := sleepUntilWoken(t, spec.Name)
	g.Expect(plane.Done()).To(BeClosed())
	g.Expect(plane.Err()).NotTo(HaveOccurred())

	answered := make(chan string, 3)
	for range 3 {
		go func() {
			value, err := configMapValue(t, patientClient(t, config), "kept")
			if err != nil {
				value = err.Error()
			}
			answered <- value
		}()
	}
	g.Eventually(woken).WithTimeout(soon).Should(Receive())
	g.Consistently(answered, "300ms").ShouldNot(Receive(), "held, not refused")
	runReady(t, shared, spec)
	for range 3 {
		g.Eventually(answered).WithTimeout(later).Should(Receive(Equal("yes")))
	}
	g.Expect(woken).To(BeEmpty(), "woken once")
}

// patientClient returns a client with connections of its own, which waits longer
// for a handshake than clients do by default.
func patientClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	g := NewWithT(t)
	tlsConfig, err := rest.TLSConfigFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: transport})
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

func TestWhatCannotSleep(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(shared.Sleep(t.Context(), "super", func() {})).To(MatchError(ContainSubstring("others need it")))
	g.Expect(shared.Sleep(t.Context(), "../etcd", func() {})).To(MatchError(ContainSubstring("cannot name")))
}

// TestASleeperIsDeletedOrClosed: connections that wait are closed when the
// control plane is deleted, or is not to wake by connections any more.
func TestASleeperIsDeletedOrClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, name string){
		"deleted": func(t *testing.T, name string) {
			t.Helper()
			NewWithT(t).Expect(shared.Delete(t.Context(), name)).To(Succeed())
		},
		"closed": func(_ *testing.T, name string) { shared.CloseRoute(name) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			name := "sleeper-" + name
			config := runReady(t, shared, hosted.Spec{Name: name, Shared: true}).RESTConfig()
			woken := sleepUntilWoken(t, name)
			failed := make(chan error, 1)
			client := patientClient(t, config)
			go func() {
				_, err := configMapValue(t, client, "none")
				failed <- err
			}()
			g.Eventually(woken).WithTimeout(soon).Should(Receive())
			end(t, name)
			g.Eventually(failed).WithTimeout(soon).Should(Receive(HaveOccurred()))
		})
	}
}

// TestUse: requests count as use, except those of the platform and of the
// control plane's own controllers, and those that are not authorized. A user of
// the control plane cannot pass for the platform by a name.
func TestUse(t *testing.T) {
	t.Parallel()
	for isolation, spec := range map[string]hosted.Spec{"dedicated": {Name: "used"}, "shared": {Name: "used-shared", Shared: true}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			countUse(t, spec)
		})
	}
}

func countUse(t *testing.T, spec hosted.Spec) {
	t.Helper()
	g := NewWithT(t)
	plane := runReady(t, shared, spec)
	ready := plane.Activity()
	g.Expect(ready.Ready).To(BeTemporally("~", time.Now(), time.Minute))

	platform, err := clientcmd.RESTConfigFromKubeConfig(plane.PlatformKubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	read(t, clientOf(t, platform))
	watch, err := clientOf(t, platform).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()

	stranger := rest.AnonymousClientConfig(platform)
	g.Expect(clientOf(t, stranger).Discovery().RESTClient().Get().AbsPath("/version").Do(t.Context()).Error()).To(Succeed())
	powerless := as(t, plane, "powerless")
	_, err = powerless.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(HaveOccurred(), "a user without rights")
	g.Expect(plane.Activity()).To(Equal(ready), "none of these is use")

	read(t, as(t, plane, "vc-platform", "system:masters"))
	impostor := plane.Activity()
	g.Expect(impostor.Last).To(BeTemporally(">", ready.Last), "a certificate of the platform's name is use")
	outside, err := clientOf(t, plane.RESTConfig()).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plane.Activity().Open).To(Equal(1), "a watch is use while it is open")
	outside.Stop()
	g.Eventually(func() int { return plane.Activity().Open }).WithTimeout(soon).Should(BeZero())
}

func read(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// as returns the client of a user with a certificate of the control plane's
// authority.
func as(t *testing.T, plane *hosted.ControlPlane, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	pair, err := plane.NewClientCertificate(name, groups)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	config := plane.RESTConfig()
	config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	return clientOf(t, config)
}

// TestASleepingControlPlaneIsItsName: five thousand of them take no goroutine,
// and little memory.
func TestASleepingControlPlaneIsItsName(t *testing.T) {
	g := NewWithT(t) // not parallel: it counts goroutines and memory
	const number = 5000
	names := make([]string, number)
	for i := range names {
		names[i] = "tenants-0a1b2c-sleeper" + strconv.Itoa(i)
	}
	g.Eventually(settled()).WithTimeout(soon).WithPolling(time.Second).Should(BeTrue())
	goroutines, before := runtime.NumGoroutine(), memtest.Heap()
	for _, name := range names {
		g.Expect(shared.Sleep(t.Context(), name, func() {})).To(Succeed())
	}
	each := (memtest.Heap() - before) / number
	t.Logf("%d bytes for each of %d sleeping control planes", each, number)
	g.Expect(each).To(BeNumerically("<", 2<<10))
	g.Expect(runtime.NumGoroutine()).To(BeNumerically("<=", goroutines+2))
	g.Expect(shared.Sleeping()).To(BeNumerically(">=", number))
	for _, name := range names {
		shared.CloseRoute(name)
	}
}
