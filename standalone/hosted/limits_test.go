package hosted_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

const mebi = 1 << 20

// fill creates ConfigMaps of half a mebibyte until one is rejected, and returns
// the error.
func fill(t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	for i := range 100 {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fill-%d", i)}, Data: map[string]string{"x": strings.Repeat("x", mebi/2)},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestStorageIsLimited(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "full", Limits: quota.Limits{Bytes: 3 * mebi, Objects: 1000}})
	client := clientOf(t, plane.RESTConfig())
	err := fill(t, client)
	g.Expect(err).To(Satisfy(apierrors.IsForbidden))
	g.Expect(err).To(MatchError(ContainSubstring("storage of this cluster is limited to 3Mi")))
	g.Expect(shared.Usage("full").Bytes).To(And(BeNumerically(">", 2*mebi), BeNumerically("<=", 3*mebi)))

	// It can be started again when it is full, and makes room by itself.
	stop(t, plane)
	plane = runReady(t, shared, hosted.Spec{Name: "full", Limits: quota.Limits{Bytes: 3 * mebi, Objects: 1000}})
	client = clientOf(t, plane.RESTConfig())
	g.Expect(fill(t, client)).To(Satisfy(apierrors.IsAlreadyExists))
	g.Expect(client.CoreV1().ConfigMaps("default").Delete(t.Context(), "fill-0", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error { return fill(t, client) }).WithTimeout(soon).Should(Satisfy(apierrors.IsAlreadyExists))
}

func TestUsageIsTheSameAfterARestart(t *testing.T) {
	g := NewWithT(t)
	opts := options(t.TempDir())
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	plane := runReady(t, host, hosted.Spec{Name: "a"})
	client := clientOf(t, plane.RESTConfig())
	for i := range 5 {
		makeConfigMap(t, client, fmt.Sprintf("cm-%d", i), strings.Repeat("x", i*1000))
	}
	g.Expect(client.CoreV1().ConfigMaps("default").Delete(t.Context(), "cm-3", metav1.DeleteOptions{})).To(Succeed())
	stop(t, plane)
	before := host.Usage("a")
	g.Expect(before.Objects).To(BeNumerically(">", 50))
	stopHost(t, host)

	host, err = hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	defer stopHost(t, host)
	g.Expect(host.Usage("a")).To(Equal(before))
	g.Expect(host.Delete(t.Context(), "a")).To(Succeed())
	g.Expect(host.Usage("a")).To(Equal(quota.Usage{}))
}

// TestASharedStoreIsSplit: a directory of one store for all becomes one of two,
// in which all control planes find their data and its revisions.
func TestASharedStoreIsSplit(t *testing.T) {
	g := NewWithT(t)
	opts := options(t.TempDir())
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"super", "tenant"} {
		makeConfigMap(t, clientOf(t, runReady(t, host, hosted.Spec{Name: name}).RESTConfig()), "data", "of "+name)
	}
	revision := revisionOf(t, host, "tenant")
	stopHost(t, host)

	opts.Super = "super"
	for range 2 { // the second start finds two stores
		host, err = hosted.Start(t.Context(), opts)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(filepath.Join(opts.Dir, "etcd-tenants", "shared")).NotTo(BeAnExistingFile())
		for _, name := range []string{"super", "tenant"} {
			client := clientOf(t, runReady(t, host, hosted.Spec{Name: name}).RESTConfig())
			g.Expect(configMapValue(t, client, "data")).To(Equal("of " + name))
		}
		g.Expect(revisionOf(t, host, "tenant")).To(Equal(revision))
		stopHost(t, host)
	}
	g.Expect(os.RemoveAll(filepath.Join(opts.Dir, "etcd-tenants"))).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(opts.Dir, "etcd-tenants"), 0o700)).To(Succeed())
	host, err = hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	defer stopHost(t, host)
	_, err = configMapValue(t, clientOf(t, runReady(t, host, hosted.Spec{Name: "tenant"}).RESTConfig()), "data")
	g.Expect(err).To(Satisfy(apierrors.IsNotFound), "the super cluster's store has no tenants' records")
}

func revisionOf(t *testing.T, host *hosted.Host, name string) string {
	t.Helper()
	g := NewWithT(t)
	plane, ok := host.Get(name)
	g.Expect(ok).To(BeTrue())
	cm, err := clientOf(t, plane.RESTConfig()).CoreV1().ConfigMaps("default").Get(t.Context(), "data", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return cm.ResourceVersion
}
