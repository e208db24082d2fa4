package test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

// webhooks are where Cluster API's own manager serves its webhooks.
type webhooks struct {
	dir  string
	port int
	ca   []byte
}

func newWebhooks() webhooks {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	Expect(err).NotTo(HaveOccurred())
	w := webhooks{dir: kit.TempDir(), port: listener.Addr().(*net.TCPAddr).Port, ca: certificate}
	Expect(os.WriteFile(filepath.Join(w.dir, "tls.crt"), certificate, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(w.dir, "tls.key"), key, 0o600)).To(Succeed())
	return w
}

// configurations returns the webhooks of a file, with URLs in place of the
// Services.
func (w webhooks) configurations(file string) []unstructured.Unstructured {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	objects := parse(data)
	for i := range objects {
		hooks, _, err := unstructured.NestedSlice(objects[i].Object, "webhooks")
		Expect(err).NotTo(HaveOccurred())
		for _, hook := range hooks {
			path, _, err := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
			Expect(err).NotTo(HaveOccurred())
			hook.(map[string]any)["clientConfig"] = map[string]any{
				"url": fmt.Sprintf("https://127.0.0.1:%d/%s", w.port, strings.TrimPrefix(path, "/")), "caBundle": base64.StdEncoding.EncodeToString(w.ca),
			}
		}
		Expect(unstructured.SetNestedSlice(objects[i].Object, hooks, "webhooks")).To(Succeed())
	}
	return objects
}
