package hosted_test

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestStorageSize: the metrics of the super cluster have the size of its etcd,
// also after handler chains were built. The metric is one of the process, so that
// no test with another host may run beside it.
func TestStorageSize(t *testing.T) {
	g := NewWithT(t)
	stock := runReady(t, shared, hosted.Spec{Name: "sized", Stock: true, Diagnostics: true})
	runReady(t, shared, hosted.Spec{Name: "sized-own"})
	content, err := clientOf(t, stock.RESTConfig()).CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(regexp.MustCompile(`(?m)^apiserver_storage_size_bytes\{[^}]*\} [1-9].*$`).Find(content)).NotTo(BeEmpty())
}
