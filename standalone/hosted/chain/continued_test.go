package chain_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestContinuedAfterCompaction: a page whose revision is compacted is answered
// with a token for the rest in its present state, and a watch has expired.
func TestContinuedAfterCompaction(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	_, red := add(t, c, "red")
	createNamespace(t, red, "team")
	for _, name := range []string{"a", "b", "c"} {
		g.Expect(createConfigMap(t, red, name)).To(Succeed())
	}
	configs := red.CoreV1().ConfigMaps("team")
	first, err := configs.List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = configs.Update(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{"is": "new"},
	}, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	put, err := all.Put(t.Context(), "/other", "")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = all.Compact(t.Context(), put.Header.Revision)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = configs.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue})
	g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)
	status, ok := errors.AsType[*apierrors.StatusError](err)
	g.Expect(ok).To(BeTrue())
	second, err := configs.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: status.ErrStatus.Continue})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Items).To(HaveLen(1))
	g.Expect(second.Items[0].Data).To(HaveKeyWithValue("is", "new"))
	g.Expect(second.RemainingItemCount).To(HaveValue(BeEquivalentTo(1)))

	watching, err := configs.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(watching.Stop)
	var event watch.Event
	g.Eventually(watching.ResultChan(), later).Should(Receive(&event))
	g.Expect(apierrors.IsResourceExpired(apierrors.FromObject(event.Object))).To(BeTrue(), "%v", event)
}
