package views_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// TestEveryInformerIsAView: a stock informer would never have any objects.
func TestEveryInformerIsAView(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := startStore(t).views("red").NewFactory()
	view := reflect.TypeOf(f.Core().V1().Pods().Informer())
	interfaceOf := reflect.TypeFor[informers.SharedInformerFactory]()
	found := 0
	for method := range interfaceOf.Methods() {
		if method.Type.NumIn() > 0 || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.Interface {
			continue // no accessor of a group
		}
		group := reflect.ValueOf(f).MethodByName(method.Name).Call(nil)[0]
		for _, v := range group.Methods() {
			version := v.Call(nil)[0]
			for resource, r := range version.Methods() {
				informer := r.Call(nil)[0].MethodByName("Informer").Call(nil)[0]
				g.Expect(informer.Elem().Type()).To(Equal(view), "%s %s", method.Name, resource.Name)
				g.Expect(informer.Interface().(cache.SharedInformer).GetStore().ListKeys()).To(BeEmpty())
				found++
			}
		}
	}
	g.Expect(found).To(BeNumerically(">", 60))
}

// TestStart: constructors add handlers before these can be called.
func TestStart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	first, second := v.NewFactory(), v.NewFactory()
	early, late, other := &handler{}, &handler{}, &handler{}
	informer := first.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandlerWithResyncPeriod(early, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = second.Core().V1().Pods().Informer().AddEventHandler(other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(informer.HasSynced()).To(BeFalse())
	g.Consistently(early.all, "100ms").Should(BeEmpty())
	first.Start(nil)
	synced(g, registration)
	g.Expect(first.WaitForCacheSync(t.Context().Done())).To(Equal(map[reflect.Type]bool{reflect.TypeFor[*corev1.Pod](): true}))
	g.Expect(early.all()).To(Equal([]string{"(team/a)"}))
	registration, err = informer.AddEventHandlerWithOptions(late, cache.HandlerOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	synced(g, registration)
	g.Expect(late.all()).To(Equal([]string{"(team/a)"}))
	g.Expect(other.all()).To(BeEmpty(), "its factory has not started")

	g.Expect(informer.RemoveEventHandler(registration)).To(Succeed())
	g.Expect(informer.RemoveEventHandler(registration)).To(Succeed())
	g.Expect(informer.RemoveEventHandler(nil)).NotTo(Succeed())
	s.Put("red", "pods", pod("b", ""))
	g.Eventually(early.all, soon).Should(ContainElement("+team/b"))
	g.Expect(late.all()).To(HaveLen(1))
	second.StartWithContext(t.Context())
	g.Eventually(other.all, soon).Should(ConsistOf("(team/a)", "(team/b)"))
}

// TestRun: some upstream code runs single informers.
func TestRun(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	informer := s.views("red").NewFactory().Core().V1().Pods().Informer()
	h := &handler{}
	_, err := informer.AddEventHandler(h)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	g.Eventually(informer.HasSyncedChecker().Done(), soon).Should(BeClosed())
	g.Eventually(h.all, soon).Should(HaveLen(1))
	g.Expect(informer.GetController().HasSynced()).To(BeTrue())
	informer.GetController().Run(nil) // returns
	g.Consistently(ended, "50ms").ShouldNot(BeClosed())
	cancel()
	g.Eventually(ended, soon).Should(BeClosed())
}

// TestSharing: the factories of a tenant share the objects of a resource in one
// version, and the indexes.
func TestSharing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	v := s.views("red")
	first, second := v.NewFactory(), v.NewFactory()
	one := first.Core().V1().Pods().Informer()
	g.Expect(first.Core().V1().Pods().Informer()).To(BeIdenticalTo(one))
	generic, err := second.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	g.Expect(err).NotTo(HaveOccurred())
	two := generic.Informer()
	object := func(i cache.SharedIndexInformer) any { return i.GetStore().List()[0] }
	g.Expect(object(one)).To(BeIdenticalTo(object(two)))
	found, err := generic.Lister().ByNamespace("team").Get("a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeIdenticalTo(object(one)))

	byName := cache.Indexers{"name": func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Name}, nil }}
	g.Expect(one.AddIndexers(byName)).To(Succeed())
	g.Expect(two.GetIndexer().ByIndex("name", "a")).To(HaveLen(1))
	g.Expect(two.GetIndexer().IndexKeys("name", "a")).To(Equal([]string{"team/a"}))
	g.Expect(two.GetIndexer().ListIndexFuncValues("name")).To(Equal([]string{"a"}))
	g.Expect(two.GetIndexer().Index("name", object(one))).To(HaveLen(1))
	g.Expect(two.GetIndexer().GetIndexers()).To(And(HaveKey("name"), HaveKey(cache.NamespaceIndex)))
	g.Expect(two.AddIndexers(byName)).NotTo(Succeed(), "as stock informers")
	first.Close()
	g.Expect(two.GetIndexer().ByIndex("name", "a")).To(HaveLen(1))

	store := two.GetStore()
	for name, err := range map[string]error{
		"add": store.Add(pod("b", "")), "update": store.Update(pod("a", "")), "delete": store.Delete(pod("a", "")), "replace": store.Replace(nil, ""),
	} {
		g.Expect(err).To(HaveOccurred(), name)
	}
	same, exists, err := store.Get(pod("a", ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exists).To(BeTrue())
	g.Expect(same).To(BeIdenticalTo(object(two)))
}

// TestIndexers: informers of the caller's own construction bring their indexes.
func TestIndexers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	s.Put("red", "pods", pod("a", ""))
	index := cache.Indexers{"all": func(any) ([]string, error) { return []string{"yes"}, nil }}
	informer := s.views("red").NewFactory().InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPodInformer(client, metav1.NamespaceAll, resync, index)
	})
	g.Expect(informer.GetIndexer().ByIndex("all", "yes")).To(HaveLen(1))
}

// TestATypeWithoutStorage is a failure, and not an empty store.
func TestATypeWithoutStorage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	seen := &failures{}
	f := startStore(t).failing("red", seen.add).NewFactory()
	informer := f.InformerFor(&apiextensionsv1.CustomResourceDefinition{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPodInformer(client, metav1.NamespaceAll, resync, nil)
	})
	g.Expect(seen.all()).To(HaveLen(1))
	g.Expect(informer.HasSynced()).To(BeFalse())
	_, _, err := informer.GetIndexer().GetByKey("a")
	g.Expect(err).To(MatchError(ContainSubstring("find the storage")))
	_, err = f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	g.Expect(err).To(HaveOccurred())
}

// TestMetadata: custom resources have metadata only, and upstream's factory
// prefers types where there are any.
func TestMetadata(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := startStore(t)
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	s.Write("red", "example.com/widgets", "team/w", []byte(
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","namespace":"team","labels":{"a":"b"},"managedFields":[{}]}}`))
	s.Put("red", "pods", pod("a", ""))
	f := s.views("red").NewFactory()
	both := informerfactory.NewInformerFactory(f, f.Metadata())
	h := &handler{}
	for resource, want := range map[schema.GroupVersionResource]any{
		widgets: &metav1.PartialObjectMetadata{}, pods: &corev1.Pod{},
	} {
		informer, err := both.ForResource(resource)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = informer.Informer().AddEventHandler(h)
		g.Expect(err).NotTo(HaveOccurred())
		all, err := informer.Lister().List(labels.Everything())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(ConsistOf(BeAssignableToTypeOf(want)))
	}
	both.Start(nil)
	g.Eventually(h.all, soon).Should(ConsistOf("(team/w)", "(team/a)"))
	g.Expect(f.Metadata().WaitForCacheSync(t.Context().Done())).To(Equal(map[schema.GroupVersionResource]bool{widgets: true}))
	s.Remove("example.com/widgets", "team/w")
	g.Eventually(h.all, soon).Should(ContainElement("-team/w"))

	only, err := f.MetadataOnly().ForResource(pods)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(only.Informer().GetStore().List()).To(ConsistOf(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{})))
	f.Metadata().Shutdown()
	g.Expect(only.Informer().IsStopped()).To(BeTrue())
}
