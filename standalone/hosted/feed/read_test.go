package feed_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// TestReads reads what one tenant has, and no other.
func TestReads(t *testing.T) { onBoth(t, checkReads) }

func checkReads(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	for key, value := range map[string]string{
		"red/pods/a/1": "first", "red/pods/a/10": "tenth", "red/services/specs/a/1": "", "red/services/endpoints/a/1": "x",
		"red/example.com/widgets/a/1": "x", "red/stamp": "no record", "red1/secrets/a/1": "of another", "re/secrets/a/1": "of another",
	} {
		put(g, client, key, value)
	}
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source.Resources(t.Context(), "red")).To(Equal([]string{"example.com/widgets", "pods", "services/endpoints", "services/specs"}))
	g.Expect(source.Resources(t.Context(), "blue")).To(BeEmpty())
	g.Expect(source.Get(t.Context(), "red", "pods", "a/1")).To(Equal([]byte("first")))
	g.Expect(source.Get(t.Context(), "red", "services/specs", "a/1")).To(Equal([]byte{}), "an empty record is not absent")
	g.Expect(source.Get(t.Context(), "red", "secrets", "a/1")).To(BeNil())
	_, err = source.Get(t.Context(), "red/pods", "a", "1")
	g.Expect(err).To(HaveOccurred())
	_, err = source.Resources(t.Context(), "")
	g.Expect(err).To(HaveOccurred())

	ended, end := context.WithCancel(t.Context())
	end()
	g.Expect(source.Run(ended)).To(Succeed())
	_, err = source.Get(t.Context(), "red", "pods", "a/1")
	g.Expect(err).To(MatchError(feed.ErrEnded))
	_, err = source.Resources(t.Context(), "red")
	g.Expect(err).To(MatchError(feed.ErrEnded))
}

// TestBefore reads states of the past, as far as they are not compacted.
func TestBefore(t *testing.T) { onBoth(t, checkBefore) }

func checkBefore(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	first := put(g, client, "red/pods/a/1", "first")
	second := put(g, client, "red/pods/a/1", "second")
	remove(g, client, "red/pods/a/1")
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source.Before(t.Context(), "red", "pods", "a/1", second+1)).To(Equal([]byte("second")))
	g.Expect(source.Before(t.Context(), "red", "pods", "a/1", second)).To(Equal([]byte("first")))
	g.Expect(source.Before(t.Context(), "red", "pods", "a/1", first)).To(BeNil())
	g.Expect(source.Before(t.Context(), "red", "pods", "a/1", 0)).To(BeNil())
	g.Expect(source.Before(t.Context(), "red", "pods", "a", second+1)).To(BeNil())
	_, err = source.Before(t.Context(), "", "pods", "a/1", second)
	g.Expect(err).To(HaveOccurred())
	_, err = client.Compact(t.Context(), second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source.Before(t.Context(), "red", "pods", "a/1", second)).To(BeNil())
}

// deletions records what each change says of an earlier deletion.
type deletions struct {
	*received

	deleted []int64
}

func (d *deletions) Receive(change feed.Change) { d.deleted = append(d.deleted, change.Deleted) }

// TestDeletedBefore: a change that supersedes a deletion tells its revision.
func TestDeletedBefore(t *testing.T) { onBoth(t, checkDeletedBefore) }

func checkDeletedBefore(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	observed := make(chan struct{}, 10)
	source.Observe(func(string, string, feed.Kind) { observed <- struct{}{} })
	s, _ := subscribe(g, source, "red")
	to := &deletions{received: newReceived()}
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	run(t, source)

	before := put(g, client, "red/pods/a/1", "x")
	remove(g, client, "red/pods/a/1")
	put(g, client, "red/pods/a/1", "y")
	put(g, client, "red/pods/a/1", "z")
	remove(g, client, "red/pods/a/1")
	put(g, client, "red/pods/a/2", "x")
	for range 6 {
		g.Eventually(observed, soon).Should(Receive())
	}
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.deleted).To(Equal([]int64{before + 1, 0}), "the first of two deletions is the one of the known object")
}
