package feed_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
)

// TestReads reads what one tenant has, and no other.
func TestReads(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kv, client := etcdtest.Start(t)
	for key, value := range map[string]string{
		"red/pods/a/1": "first", "red/pods/a/10": "tenth", "red/services/specs/a/1": "", "red/services/endpoints/a/1": "x",
		"red/example.com/widgets/a/1": "x", "red/stamp": "no record", "red1/secrets/a/1": "of another", "re/secrets/a/1": "of another",
	} {
		put(g, client, key, value)
	}
	source, err := feed.New(kv)
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
