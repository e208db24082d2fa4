package hosted_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

func TestEverythingIsThereAfterARestart(t *testing.T) {
	g := NewWithT(t)
	opts := options(t.TempDir())
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	first := runReady(t, host, hosted.Spec{Name: "a"})
	makeConfigMap(t, clientOf(t, first.RESTConfig()), "kept", "yes")
	stopHost(t, host)
	g.Expect(first.Done()).To(BeClosed())

	host, err = hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	defer stopHost(t, host)
	second := runReady(t, host, hosted.Spec{Name: "a"})
	g.Expect(second.CA()).To(Equal(first.CA()))
	g.Expect(configMapValue(t, clientOf(t, second.RESTConfig()), "kept")).To(Equal("yes"))
}

func stopHost(t *testing.T, host *hosted.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), later)
	defer cancel()
	NewWithT(t).Expect(host.Stop(ctx)).To(Succeed())
	NewWithT(t).Expect(host.Err()).NotTo(HaveOccurred())
}

func TestHostSaysWhatKeepsItFromStarting(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, text, err := net.SplitHostPort(shared.Address())
	g.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())

	taken := options(t.TempDir())
	taken.Port = port
	_, err = hosted.Start(t.Context(), taken)
	g.Expect(err).To(MatchError(ContainSubstring("is taken")))

	used := options(sharedDir)
	_, err = hosted.Start(t.Context(), used)
	g.Expect(err).To(MatchError(ContainSubstring("another process uses")))

	_, err = hosted.Start(t.Context(), hosted.Options{})
	g.Expect(err).To(MatchError(ContainSubstring("needs a directory")))

	nowhere := options(t.TempDir())
	nowhere.Listen = "nowhere"
	_, err = hosted.Start(t.Context(), nowhere)
	g.Expect(err).To(MatchError(ContainSubstring("not an IP address")))
}

func TestDeleteTakesOneControlPlaneAndNoOther(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	gone := runReady(t, shared, hosted.Spec{Name: "del"})
	other := runReady(t, shared, hosted.Spec{Name: "del2"}) // its name begins with the other's
	otherClient := clientOf(t, other.RESTConfig())
	makeConfigMap(t, clientOf(t, gone.RESTConfig()), "data", "old")
	makeConfigMap(t, otherClient, "data", "mine")

	g.Expect(shared.Delete(t.Context(), "del")).To(Succeed())
	g.Expect(gone.Done()).To(BeClosed())
	g.Expect(shared.Delete(t.Context(), "del")).To(Succeed(), "a second time")
	g.Expect(configMapValue(t, otherClient, "data")).To(Equal("mine"))
	g.Expect(shared.Delete(t.Context(), "../etcd")).To(MatchError(ContainSubstring("cannot name")))

	anew := runReady(t, shared, hosted.Spec{Name: "del"})
	g.Expect(anew.CA()).NotTo(Equal(gone.CA()))
	_, err := configMapValue(t, clientOf(t, anew.RESTConfig()), "data")
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
}

func TestAnOpenWatchDoesNotDelayAStop(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "watched"})
	watch, err := clientOf(t, plane.RESTConfig()).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	begin := time.Now()
	stop(t, plane)
	g.Expect(time.Since(begin)).To(BeNumerically("<", 20*time.Second))
	g.Eventually(watch.ResultChan()).WithTimeout(soon).Should(BeClosed())
}

// A start-up hook that is interrupted would end this process.
func TestAControlPlaneCanBeStoppedWhileItStarts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond, 1200 * time.Millisecond} {
		plane, err := shared.Run(hosted.Spec{Name: "early"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Consistently(plane.Done(), after).ShouldNot(BeClosed())
		stop(t, plane)
		g.Expect(plane.Done()).To(BeClosed())
	}
	runReady(t, shared, hosted.Spec{Name: "early"})
}

func TestNothingLeaksOverManyCycles(t *testing.T) {
	g := NewWithT(t) // not parallel: it counts goroutines
	cycle := func() { stop(t, runReady(t, shared, hosted.Spec{Name: "cycle"})) }
	cycle() // what is made once in a process
	g.Eventually(settled()).WithTimeout(soon).WithPolling(time.Second).Should(BeTrue())
	before := runtime.NumGoroutine()
	for range 5 {
		cycle()
	}
	g.Eventually(runtime.NumGoroutine).WithTimeout(soon).WithPolling(tick).Should(BeNumerically("<=", before+10))
}

// settled reports whether the number of goroutines is the same as last time.
func settled() func() bool {
	last := -1
	return func() bool {
		now := runtime.NumGoroutine()
		defer func() { last = now }()
		return now == last
	}
}

func TestALongDirectoryIsNoObstacle(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	long := "a-directory-with-a-name-that-is-longer-than-a-unix-socket-path-can-be-on-any-system-that-we-know-of-today"
	host, err := hosted.Start(t.Context(), options(filepath.Join(t.TempDir(), long)))
	g.Expect(err).NotTo(HaveOccurred())
	stopHost(t, host)
}

func TestAFailedStartIsToldAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	pki := filepath.Join(sharedDir, "controlplanes", "broken", "pki")
	key := filepath.Join(pki, "sa.pub")
	g.Expect(os.MkdirAll(pki, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(key, []byte("no key"), 0o600)).To(Succeed())

	plane, err := shared.Run(hosted.Spec{Name: "broken", Stock: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(plane.Done()).WithTimeout(soon).Should(BeClosed())
	g.Expect(plane.Err()).To(MatchError(ContainSubstring(key)))
	g.Expect(plane.Ready()).NotTo(BeClosed())

	g.Expect(os.Remove(key)).To(Succeed())
	runReady(t, shared, hosted.Spec{Name: "broken", Stock: true})
}
