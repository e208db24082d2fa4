package views_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// TestReadsThatFail: no read of objects that cannot be listed looks like an
// empty store, if it can return an error, and the informer has not synced.
func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	informer := s.views("red").NewFactory().Core().V1().Pods().Informer()
	s.Stop()
	indexer := informer.GetIndexer()
	g := NewWithT(t)
	for name, read := range map[string]func() error{
		"an object":           func() error { _, _, err := indexer.Get(pod("a", "")); return err },
		"a key":               func() error { _, _, err := indexer.GetByKey("team/a"); return err },
		"an index":            func() error { _, err := indexer.ByIndex(cache.NamespaceIndex, "team"); return err },
		"an index of objects": func() error { _, err := indexer.Index(cache.NamespaceIndex, pod("a", "")); return err },
		"the keys of one":     func() error { _, err := indexer.IndexKeys(cache.NamespaceIndex, "team"); return err },
	} {
		g.Expect(read()).To(MatchError(feed.ErrEnded), name)
	}
	g.Expect(indexer.List()).To(BeEmpty())
	g.Expect(indexer.ListKeys()).To(BeEmpty())
	g.Expect(indexer.ListIndexFuncValues(cache.NamespaceIndex)).To(BeEmpty())
	g.Expect(indexer.LastStoreSyncResourceVersion()).To(BeEmpty())
	g.Expect(informer.HasSynced()).To(BeFalse())
}

// byNode returns an index of pods.
func byNode(name string) cache.Indexers {
	return cache.Indexers{name: func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil }}
}

// TestIndexesThatAreAddedLater: an index covers the objects that were listed
// before it was added, and those that follow.
func TestIndexesThatAreAddedLater(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	first := pod("a", "")
	first.Spec.NodeName = "one"
	s.Put("red", "pods", first)
	indexer := s.views("red").NewFactory().Core().V1().Pods().Informer().GetIndexer()
	g.Expect(indexer.AddIndexers(byNode("before"))).To(Succeed())
	g.Expect(indexer.ByIndex("before", "one")).To(HaveLen(1), "this lists the objects")
	_, err := indexer.ByIndex("after", "one")
	g.Expect(err).To(HaveOccurred())

	g.Expect(indexer.AddIndexers(byNode("after"))).To(Succeed())
	g.Expect(indexer.IndexKeys("after", "one")).To(ConsistOf("team/a"))
	second := pod("b", "")
	second.Spec.NodeName = "two"
	s.Put("red", "pods", second)
	g.Eventually(func() ([]string, error) { return indexer.IndexKeys("after", "two") }, soon).Should(ConsistOf("team/b"))
	g.Expect(indexer.ListIndexFuncValues("before")).To(ConsistOf("one", "two"))
	g.Expect(indexer.AddIndexers(byNode("after"))).To(MatchError(ContainSubstring(`"after" exists`)))
}

// TestMetadataInformers: those of metadata start and end with their factory, and
// another factory of the tenant continues.
func TestMetadataInformers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	first, second := v.NewFactory().Metadata(), v.NewFactory().Metadata()
	ended, continued := &handler{}, &handler{}
	one := first.ForResource(pods).Informer()
	_, err := one.AddEventHandler(ended)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = second.ForResource(pods).Informer().AddEventHandler(continued)
	g.Expect(err).NotTo(HaveOccurred())
	first.Start(t.Context().Done())
	second.Start(t.Context().Done())
	g.Expect(first.WaitForCacheSync(t.Context().Done())).To(HaveKeyWithValue(pods, true))
	g.Eventually(ended.all, soon).Should(ConsistOf("(team/a)"))
	g.Eventually(continued.all, soon).Should(ConsistOf("(team/a)"))
	found, err := first.ForResource(pods).Lister().ByNamespace("team").Get("a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}))

	first.Shutdown()
	first.Shutdown() // has no effect
	s.Put("red", "pods", pod("b", ""))
	g.Eventually(continued.all, soon).Should(ConsistOf("(team/a)", "+team/b"))
	g.Expect(ended.all()).To(ConsistOf("(team/a)"), "its handlers are removed")
}

// TestFactoryThatIsClosed: it has no informers that work, and closes none of
// another factory.
func TestFactoryThatIsClosed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	closed, other := v.NewFactory(), v.NewFactory()
	closed.Shutdown()
	late := closed.Core().V1().Pods().Informer()
	_, err := late.AddEventHandler(&handler{})
	g.Expect(err).To(MatchError(ContainSubstring("add a handler of Pod")))
	_, _, err = late.GetIndexer().GetByKey("team/a")
	g.Expect(err).To(HaveOccurred())
	g.Expect(late.IsStopped()).To(BeTrue())

	works := other.Core().V1().Pods().Informer()
	g.Expect(works.GetIndexer().ListKeys()).To(ConsistOf("team/a"))
	g.Expect(works.IsStopped()).To(BeFalse())
	closed.Core().V1().Pods().Informer()
	g.Expect(works.GetIndexer().ListKeys()).To(ConsistOf("team/a"))
}

// TestRemoveHandler: a handler that is removed is not called, and others are.
func TestRemoveHandler(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	factory := s.views("red").NewFactory()
	informer := factory.Core().V1().Pods().Informer()
	removed, kept := &handler{}, &handler{}
	registration, err := informer.AddEventHandler(removed)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = informer.AddEventHandler(kept)
	g.Expect(err).NotTo(HaveOccurred())
	factory.Start(t.Context().Done())
	synced(g, registration)
	g.Expect(informer.RemoveEventHandler(registration)).To(Succeed())
	g.Expect(informer.RemoveEventHandler(nil)).To(MatchError(ContainSubstring("not one of this informer")))
	s.Put("red", "pods", pod("b", ""))
	g.Eventually(kept.all, soon).Should(ConsistOf("(team/a)", "+team/b"))
	g.Expect(removed.all()).To(ConsistOf("(team/a)"))
}
