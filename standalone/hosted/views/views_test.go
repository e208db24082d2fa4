package views_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/feedtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// TestRead: the first read lists, later ones see the changes, and no tenant
// sees the objects of another.
func TestRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "configmaps", configMap("a", "1"))
	s.Put("blue", "configmaps", configMap("a", "of blue"))
	red, blue := s.views("red").NewFactory(), s.views("blue").NewFactory()
	value := func(f *views.Factory, name string) string {
		found, err := f.Core().V1().ConfigMaps().Lister().ConfigMaps("team").Get(name)
		if apierrors.IsNotFound(err) {
			return "none"
		}
		g.Expect(err).NotTo(HaveOccurred())
		return found.Annotations["value"]
	}
	g.Expect(value(red, "a")).To(Equal("1"))
	g.Expect(value(red, "b")).To(Equal("none"))
	s.Put("red", "configmaps", configMap("b", "2"))
	g.Eventually(func() string { return value(red, "b") }, soon).Should(Equal("2"))
	s.Put("red", "configmaps", configMap("a", "3"))
	g.Eventually(func() string { return value(red, "a") }, soon).Should(Equal("3"))
	s.Remove("configmaps", "team/a")
	g.Eventually(func() string { return value(red, "a") }, soon).Should(Equal("none"))

	g.Expect(value(blue, "a")).To(Equal("of blue"))
	all, err := blue.Core().V1().ConfigMaps().Lister().List(labels.Everything())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(1))
}

// TestNothingIsListedBeforeItIsUsed: a tenant's admission plugins request
// dozens of informers, most of which they never read.
func TestNothingIsListedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	f := s.views("red").NewFactory()
	pods := f.Core().V1().Pods()
	informer, lister := pods.Informer(), pods.Lister()
	f.Start(nil)
	g.Expect(informer.HasSynced()).To(BeTrue())
	g.Expect(f.WaitForCacheSyncWithContext(t.Context()).AsError()).To(Succeed())
	g.Expect(informer.LastSyncResourceVersion()).To(BeEmpty(), "it is not listed")
	all, err := lister.List(labels.Everything())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(1))
	g.Expect(informer.LastSyncResourceVersion()).NotTo(BeEmpty())
}

// TestAHandlerThatBlocks delays neither the other handlers and reads of its
// tenant, nor other tenants.
func TestAHandlerThatBlocks(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	red, blue := s.views("red").NewFactory(), s.views("blue").NewFactory()
	release := make(chan struct{})
	defer close(release)
	blocked, other, foreign := &handler{before: func(string) { <-release }}, &handler{}, &handler{}
	for h, f := range map[*handler]*views.Factory{blocked: red, other: red, foreign: blue} {
		_, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
		g.Expect(err).NotTo(HaveOccurred())
	}
	red.Start(nil)
	blue.Start(nil)
	for i := range 50 {
		s.Put("red", "pods", pod(fmt.Sprint("r", i), ""))
		s.Put("blue", "pods", pod(fmt.Sprint("b", i), ""))
	}
	g.Eventually(func() int { return len(foreign.all()) }, soon).Should(Equal(50))
	g.Eventually(func() int { return len(other.all()) }, soon).Should(Equal(50))
	g.Expect(red.Core().V1().Pods().Informer().GetStore().ListKeys()).To(HaveLen(50))
	g.Expect(blocked.all()).To(BeEmpty())
}

// TestCoalescing: a handler that is behind gets the latest state of each
// object, and a deletion if the object is another one of the same name.
func TestCoalescing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	for _, name := range []string{"first", "replaced", "changed", "removed"} {
		s.Put("red", "pods", pod(name, "1"))
	}
	f := s.views("red").NewFactory()
	informer := f.Core().V1().Pods().Informer()
	entered, release := make(chan struct{}), make(chan struct{})
	slow, fast := &handler{}, &handler{}
	slow.before = func(call string) {
		if call == "=team/first" {
			close(entered)
			<-release
		}
	}
	for _, h := range []*handler{slow, fast} {
		registration, err := informer.AddEventHandler(h)
		g.Expect(err).NotTo(HaveOccurred())
		f.Start(nil)
		synced(g, registration)
		g.Expect(h.all()).To(ConsistOf("(team/first)", "(team/replaced)", "(team/changed)", "(team/removed)"))
	}
	s.Put("red", "pods", pod("first", "1"))
	<-entered
	s.Remove("pods", "team/replaced")
	g.Eventually(fast.all, soon).Should(ContainElement("-team/replaced"))
	s.Put("red", "pods", pod("replaced", "2"))
	for range 10 {
		s.Put("red", "pods", pod("changed", "1"))
	}
	s.Remove("pods", "team/removed")
	s.Put("red", "pods", pod("brief", "1"))
	g.Eventually(fast.all, soon).Should(ContainElement("+team/brief"))
	s.Remove("pods", "team/brief")
	s.Put("red", "pods", pod("last", "1"))
	g.Eventually(fast.all, soon).Should(ContainElement("+team/last"))
	close(release)
	g.Eventually(slow.all, soon).Should(ContainElement("+team/last"))
	g.Expect(slow.all()[4:]).To(Equal([]string{
		"=team/first", "-team/replaced", "+team/replaced", "=team/changed", "-team/removed", "+team/last",
	}))
}

// TestAHandlerThatPanics: its failure is reported, and it gets the next change.
func TestAHandlerThatPanics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	seen := &failures{}
	f := s.failing("red", seen.add).NewFactory()
	broken, other := &handler{}, &handler{}
	broken.before = func(call string) {
		if call == "+team/a" {
			panic("on purpose")
		}
	}
	for _, h := range []*handler{broken, other} {
		_, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
		g.Expect(err).NotTo(HaveOccurred())
	}
	f.Start(nil)
	g.Eventually(f.Core().V1().Pods().Informer().HasSynced, soon).Should(BeTrue())
	s.Put("red", "pods", pod("a", ""))
	s.Put("red", "pods", pod("b", ""))
	g.Eventually(broken.all, soon).Should(Equal([]string{"+team/b"}))
	g.Eventually(other.all, soon).Should(Equal([]string{"+team/a", "+team/b"}))
	errs := seen.all()
	g.Expect(errs).To(HaveLen(1))
	g.Expect(errs[0]).To(MatchError(And(ContainSubstring("red"), ContainSubstring("handle a change of Pod team/a: panic: on purpose"))))
	var reason *views.PanicError
	g.Expect(errors.As(errs[0], &reason)).To(BeTrue())
	g.Expect(string(reason.Stack)).To(ContainSubstring("views_test.go"))
}

// TestObjectsThatCannotBeDecoded are reported without their contents, and the
// others are delivered.
func TestObjectsThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	const secret = "secret-content"
	good := feedtest.Encode(t, pod("good", ""), corev1.SchemeGroupVersion)
	s.Write("red", "pods", "team/bytes", []byte(secret))
	s.Write("red", "pods", "team/empty", nil)
	s.Write("red", "pods", "team/cut", good[:len(good)-3])
	s.Write("red", "pods", "team/json", []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"json","namespace":"team"},"spec":"`+secret+`"}`))
	s.Write("red", "pods", "team/future", []byte(`{"apiVersion":"v9","kind":"Pod","metadata":{"name":"future","namespace":"team"}}`))
	s.Write("red", "pods", "team/other", good)
	s.Write("red", "pods", "team/good", good)
	seen := &failures{}
	f := s.failing("red", seen.add).NewFactory()
	h := &handler{}
	_, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
	g.Expect(err).NotTo(HaveOccurred())
	f.Start(nil)
	g.Eventually(h.all, soon).Should(Equal([]string{"(team/good)"}))
	var texts []string
	for _, err := range seen.all() {
		var reason *views.DecodeError
		g.Expect(errors.As(err, &reason)).To(BeTrue(), err.Error())
		g.Expect(reason.UnknownVersion).To(Equal(reason.Name == "team/future"), err.Error())
		texts = append(texts, err.Error())
	}
	g.Expect(texts).To(HaveLen(6))
	g.Expect(strings.Join(texts, "\n")).NotTo(ContainSubstring(secret))
	g.Expect(texts).To(ContainElement(ContainSubstring("decode Pod team/cut: the stored object is damaged")))

	// An object that was known stays until it is deleted.
	s.Write("red", "pods", "team/good", []byte(secret))
	g.Eventually(func() int { return len(seen.all()) }, soon).Should(Equal(7))
	g.Expect(f.Core().V1().Pods().Informer().GetStore().ListKeys()).To(Equal([]string{"team/good"}))
	s.Remove("pods", "team/good")
	g.Eventually(h.all, soon).Should(ContainElement("-team/good"))
}

// TestRelist: after a compaction that the feed has not seen, handlers get what
// they missed, and no more.
func TestRelist(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	for _, name := range []string{"kept", "changed", "removed"} {
		s.Put("red", "pods", pod(name, "1"))
	}
	blocked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Feed.Observe(func(_, resource string, _ feed.Kind) {
		if resource == "block" {
			once.Do(func() { close(blocked) })
			<-release
		}
	})
	f := s.views("red").NewFactory()
	h := &handler{}
	registration, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
	g.Expect(err).NotTo(HaveOccurred())
	f.Start(nil)
	synced(g, registration)
	s.Write("red", "block", "team/any", nil)
	<-blocked
	for range 500 {
		s.Write("red", "flood", "team/any", nil)
	}
	s.Put("red", "pods", pod("changed", "1"))
	s.Put("red", "pods", pod("added", "1"))
	s.Remove("pods", "team/removed")
	response, err := s.Client.Get(t.Context(), "/")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Client.Compact(t.Context(), response.Header.Revision)
	g.Expect(err).NotTo(HaveOccurred())
	close(release)
	g.Eventually(func() []string { return h.all()[3:] }, soon).Should(ConsistOf("=team/changed", "+team/added", "-team/removed"))
	s.Put("red", "pods", pod("kept", "1"))
	g.Eventually(h.all, soon).Should(ContainElement("=team/kept"))
}

// TestClose: nothing of a tenant's views remains.
func TestClose(t *testing.T) {
	g := NewWithT(t)
	s := startStore(t)
	for i := range 50 {
		s.Put("red", "pods", pod(fmt.Sprint(i), ""))
	}
	before := runtime.NumGoroutine()
	v := s.views("red")
	f := v.NewFactory()
	h := &handler{}
	registration, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
	g.Expect(err).NotTo(HaveOccurred())
	f.Start(nil)
	synced(g, registration)
	g.Eventually(runtime.NumGoroutine, soon).Should(BeNumerically("<=", before), "idle views have no goroutine")

	entered, release := make(chan struct{}), make(chan struct{})
	h.before = func(string) {
		close(entered)
		<-release
	}
	s.Put("red", "pods", pod("late", ""))
	<-entered
	short, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(v.Close(short)).To(MatchError(ContainSubstring(`handlers of tenant "red"`)))
	close(release)
	g.Expect(v.Close(t.Context())).To(Succeed())
	g.Eventually(runtime.NumGoroutine, soon).Should(BeNumerically("<=", before))

	s.Put("red", "pods", pod("ignored", ""))
	informer := f.Core().V1().Pods().Informer()
	g.Expect(informer.IsStopped()).To(BeTrue())
	g.Consistently(informer.GetStore().ListKeys, "100ms").Should(HaveLen(51), "no object seems to be deleted")
	_, err = informer.AddEventHandler(h)
	g.Expect(err).To(HaveOccurred())
	_, err = f.Core().V1().Secrets().Lister().Secrets("team").Get("a")
	g.Expect(err).To(MatchError(ContainSubstring("closed")), "rather than not found")
	g.Expect(f.Core().V1().Secrets().Informer().HasSynced()).To(BeFalse())
}

// TestRelease: a view ends with its last factory, and Trim frees what is not
// read any more.
func TestRelease(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	first, second := v.NewFactory(), v.NewFactory()
	one, two := &handler{}, &handler{}
	for h, f := range map[*handler]*views.Factory{one: first, two: second} {
		_, err := f.Core().V1().Pods().Informer().AddEventHandler(h)
		g.Expect(err).NotTo(HaveOccurred())
		f.Start(nil)
		g.Eventually(h.all, soon).Should(Equal([]string{"(team/a)"}))
	}
	first.Close()
	first.Close()
	s.Put("red", "pods", pod("b", ""))
	g.Eventually(two.all, soon).Should(ContainElement("+team/b"))
	g.Expect(one.all()).To(HaveLen(1))
	informer := second.Core().V1().Pods().Informer()
	g.Expect(informer.IsStopped()).To(BeFalse())
	second.Close()
	g.Expect(informer.IsStopped()).To(BeTrue())

	third := v.NewFactory()
	pods := third.Core().V1().Pods()
	g.Expect(pods.Informer().GetStore().ListKeys()).To(HaveLen(2))
	v.Trim()
	g.Expect(pods.Informer().LastSyncResourceVersion()).NotTo(BeEmpty(), "it was read")
	v.Trim()
	g.Expect(pods.Informer().LastSyncResourceVersion()).To(BeEmpty())
	s.Put("red", "pods", pod("c", ""))
	g.Expect(pods.Informer().GetStore().ListKeys()).To(HaveLen(3), "it is listed again")
	registration, err := pods.Informer().AddEventHandler(one)
	g.Expect(err).NotTo(HaveOccurred())
	third.Start(nil)
	synced(g, registration)
	v.Trim()
	v.Trim()
	s.Put("red", "pods", pod("d", ""))
	g.Eventually(one.all, soon).Should(ContainElement("+team/d"), "what has a handler is not freed")
}

// TestTrimDuringReads: a read never sees a view that is being freed as empty.
func TestTrimDuringReads(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	lister := v.NewFactory().Core().V1().Pods().Lister()
	done := make(chan struct{})
	var trimming sync.WaitGroup
	trimming.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				v.Trim()
			}
		}
	})
	for range 2000 {
		_, err := lister.Pods("team").Get("a")
		g.Expect(err).NotTo(HaveOccurred())
		all, err := lister.List(labels.Everything())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(HaveLen(1))
	}
	close(done)
	trimming.Wait()
}

// TestAFeedThatHasEnded is an error to reads, and not an empty store.
func TestAFeedThatHasEnded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	informer := s.views("red").NewFactory().Core().V1().Pods().Informer()
	s.Stop()
	_, _, err := informer.GetIndexer().GetByKey("team/a")
	g.Expect(err).To(MatchError(feed.ErrEnded))
	g.Expect(informer.HasSynced()).To(BeFalse())
}

// TestTenantNames: a name that is none fails every read.
func TestTenantNames(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	for _, name := range []string{"", "/", "red/pods", "red/"} {
		_, _, err := s.views(name).NewFactory().Core().V1().Pods().Informer().GetIndexer().GetByKey("team/a")
		g.Expect(err).To(HaveOccurred(), name)
	}
}

func TestEconomy(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	large := configMap("a", "kept")
	large.Data, large.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	s.Put("red", "configmaps", large)
	informer := s.views("red").NewFactory().Core().V1().ConfigMaps().Informer()
	g.Expect(informer.SetTransform(func(object any) (any, error) {
		object.(*corev1.ConfigMap).Labels = map[string]string{"set": "by a transform"}
		return object, nil
	})).To(Succeed())
	found, exists, err := informer.GetIndexer().GetByKey("team/a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exists).To(BeTrue())
	g.Expect(found).To(And(HaveField("Data", BeEmpty()), HaveField("ManagedFields", BeEmpty()),
		HaveField("Annotations", HaveLen(1)), HaveField("Labels", HaveLen(1)), HaveField("ResourceVersion", Not(BeEmpty()))))
	g.Expect(informer.SetTransform(nil)).NotTo(Succeed(), "after the first read")
}
