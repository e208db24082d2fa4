package decoded_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // its types are decoded

	"github.com/virtualcluster/virtualcluster/standalone/hosted/decoded"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const plenty = 1 << 30

// counting counts what is decoded.
type counting struct {
	etcd3.Decoder

	lists, gets int
	err         error
}

func (c *counting) DecodeListItem(
	ctx context.Context, data []byte, revision uint64, newItem func() apiruntime.Object,
) (apiruntime.Object, error) {
	c.lists++
	if c.err != nil {
		return nil, c.err
	}
	return c.Decoder.DecodeListItem(ctx, data, revision, newItem)
}

func (c *counting) Decode(data []byte, object apiruntime.Object, revision int64) error {
	c.gets++
	return c.Decoder.Decode(data, object, revision)
}

func newDecoder() *counting {
	return &counting{Decoder: etcd3.NewDefaultDecoder(codec(), storage.APIObjectVersioner{})}
}

// codec returns that of stored pods.
func codec() apiruntime.Codec {
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	return legacyscheme.Codecs.CodecForVersions(
		serializer, legacyscheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, core.SchemeGroupVersion)
}

// encoded returns a pod as it is stored.
func encoded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := apiruntime.Encode(codec(), &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "web", Image: "registry.k8s.io/pause"}}},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

func newPod() apiruntime.Object { return &core.Pod{} }

// list decodes one object as a list does.
func list(t testing.TB, decoder etcd3.Decoder, tenant string, data []byte, revision uint64) *core.Pod {
	t.Helper()
	object, err := decoder.DecodeListItem(keyspace.NewContext(t.Context(), tenant), data, revision, newPod)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return object.(*core.Pod)
}

// TestListsDecodeOnce: an object is decoded again if anything is different.
func TestListsDecodeOnce(t *testing.T) {
	inner, other := newDecoder(), newDecoder()
	cache := decoded.New(plenty)
	decoder := cache.Decoder(inner)
	first := list(t, decoder, "red", encoded(t, "web"), 7)
	for name, test := range map[string]struct {
		decoder  etcd3.Decoder
		tenant   string
		object   string
		revision uint64
		known    bool
	}{
		"the same":         {decoder, "red", "web", 7, true},
		"another revision": {decoder, "red", "web", 8, false},
		// One transaction writes many objects.
		"another object of the revision": {decoder, "red", "db", 7, false},
		"another tenant":                 {decoder, "blue", "web", 7, false},
		"another resource":               {cache.Decoder(other), "red", "web", 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := inner.lists + other.lists
			got := list(t, test.decoder, test.tenant, encoded(t, test.object), test.revision)
			g.Expect(got.Name).To(Equal(test.object))
			g.Expect(got.ResourceVersion).To(Equal(fmt.Sprint(test.revision)))
			decodes := inner.lists + other.lists - before
			if test.known {
				g.Expect(got).To(BeIdenticalTo(first))
				g.Expect(decodes).To(BeZero())
				return
			}
			g.Expect(got).NotTo(BeIdenticalTo(first))
			g.Expect(decodes).To(Equal(1))
		})
	}
}

// TestGetsHaveTheirOwnObjects: an update changes what it has got.
func TestGetsHaveTheirOwnObjects(t *testing.T) {
	g := NewWithT(t)
	inner := newDecoder()
	decoder := decoded.New(plenty).Decoder(inner)
	data := encoded(t, "web")
	listed := list(t, decoder, "red", data, 7)
	for range 2 {
		got := &core.Pod{}
		g.Expect(decoder.Decode(data, got, 7)).To(Succeed())
		got.Labels["app"] = "changed"
	}
	g.Expect(inner.gets).To(Equal(2))
	g.Expect(listed.Labels).To(HaveKeyWithValue("app", "web"))
}

// TestFailuresAreNotRemembered: each list reports the object that cannot be
// decoded.
func TestFailuresAreNotRemembered(t *testing.T) {
	g := NewWithT(t)
	inner := newDecoder()
	decoder := decoded.New(plenty).Decoder(inner)
	inner.err = errors.New("broken")
	for range 2 {
		_, err := decoder.DecodeListItem(keyspace.NewContext(t.Context(), "red"), encoded(t, "web"), 7, newPod)
		g.Expect(err).To(MatchError("broken"))
	}
	g.Expect(inner.lists).To(Equal(2))
	inner.err = nil
	g.Expect(list(t, decoder, "red", encoded(t, "web"), 7).Name).To(Equal("web"))
}

func TestListsOfNoTenantFail(t *testing.T) {
	g := NewWithT(t)
	inner := newDecoder()
	_, err := decoded.New(plenty).Decoder(inner).DecodeListItem(t.Context(), encoded(t, "web"), 7, newPod)
	g.Expect(err).To(MatchError(keyspace.ErrNoTenant))
	g.Expect(inner.lists).To(BeZero())
}

// knows returns how many of a tenant's objects are known, of those that
// listMany has listed.
func knows(t testing.TB, decoder *counting, of etcd3.Decoder, tenant string, n int) int {
	t.Helper()
	before := decoder.lists
	decoder.err = errors.New("not known")
	defer func() { decoder.err = nil }()
	for i := range n {
		_, _ = of.DecodeListItem(keyspace.NewContext(t.Context(), tenant), encoded(t, fmt.Sprint("pod-", i)), 7, newPod)
	}
	return n - (decoder.lists - before)
}

func listMany(t testing.TB, of etcd3.Decoder, tenant string, n int) {
	t.Helper()
	for i := range n {
		list(t, of, tenant, encoded(t, fmt.Sprint("pod-", i)), 7)
	}
}

// TestCapacity: a tenant with many objects leaves those of others, and keeps a
// part of its own whatever it lists.
func TestCapacity(t *testing.T) {
	g := NewWithT(t)
	const capacity = 1 << 20
	cache, inner := decoded.New(capacity), newDecoder()
	of := cache.Decoder(inner)
	listMany(t, of, "small", 20)
	for range 2 {
		listMany(t, of, "large", 2000)
	}
	g.Expect(knows(t, inner, of, "small", 20)).To(Equal(20))
	few := knows(t, inner, of, "large", 2000)
	g.Expect(few).To(BeNumerically(">", 20))
	g.Expect(few).To(BeNumerically("<", 200))
	// Tenants that have their parts lose some to a new one.
	for i := range 5 {
		listMany(t, of, fmt.Sprint("tenant-", i), 2000)
	}
	g.Expect(knows(t, inner, of, "tenant-4", 2000)).To(BeNumerically(">", 20))
	all := knows(t, inner, of, "large", 2000) + knows(t, inner, of, "small", 20)
	for i := range 5 {
		all += knows(t, inner, of, fmt.Sprint("tenant-", i), 2000)
	}
	g.Expect(all).To(BeNumerically("<", 4*few+40))
}

// TestTrim: what no list had between two calls is removed, and the rest is kept.
func TestTrim(t *testing.T) {
	g := NewWithT(t)
	cache, inner := decoded.New(plenty), newDecoder()
	of := cache.Decoder(inner)
	listMany(t, of, "red", 10)
	listMany(t, of, "blue", 10)
	cache.Trim()
	g.Expect(knows(t, inner, of, "red", 5)).To(Equal(5), "it was listed before")
	cache.Trim()
	g.Expect(knows(t, inner, of, "red", 10)).To(Equal(5))
	g.Expect(knows(t, inner, of, "blue", 10)).To(BeZero())
	cache.Forget("red")
	cache.Forget("none")
	g.Expect(knows(t, inner, of, "red", 10)).To(BeZero())
}

// TestMemory: the capacity is about the memory that is used.
func TestMemory(t *testing.T) {
	g := NewWithT(t)
	const capacity = 32 << 20
	cache := decoded.New(capacity)
	of := cache.Decoder(newDecoder())
	before := memtest.Heap()
	for i := range 4 {
		listMany(t, of, fmt.Sprint("tenant-", i), 5000)
	}
	used := memtest.Heap() - before
	t.Logf("%d KiB of heap for a capacity of %d KiB", used>>10, capacity>>10)
	g.Expect(used).To(BeNumerically("<", capacity*5/4))
	g.Expect(used).To(BeNumerically(">", capacity/2))
	runtime.KeepAlive(cache)
}
