package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

func (f *faults) expiredWatch() {
	It("changes on both sides are found after watches have expired", Label("long"), func(ctx SpecContext) {
		const ns, behind, much = "expired", "behind", 60
		// Red is available only at times: its apiserver restarts.
		red, blue := newLoad(ctx, f.red, ns), newLoad(ctx, f.blue, ns)
		blue.start(ctx)
		DeferCleanup(blue.end)
		kit.Create(ctx, f.red.Client, kit.Namespace(behind), service(behind, "deleted-below"), service(behind, "deleted-above"),
			kit.Pod(behind, "ended-below"), kit.Pod(behind, "ended-above"))
		Eventually(running).WithContext(ctx).WithArguments(f.red.Client, behind).Should(HaveLen(2))
		for _, name := range []string{"deleted-below", "deleted-above"} {
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(f.red, service(behind, name)))
		}
		known := resourceVersion(ctx, f.red)

		f.far.Cut()
		f.super.Cut()
		red.changes(ctx, much)
		Expect(f.red.Client.Delete(ctx, service(behind, "deleted-above"))).To(Succeed())
		Expect(f.red.Client.Delete(ctx, kit.Pod(behind, "ended-above"), client.GracePeriodSeconds(0))).To(Succeed())
		Expect(super.Client.Delete(ctx, kit.SuperOf(f.red, service(behind, "deleted-below")))).To(Succeed())
		Expect(super.Client.Delete(ctx, kit.SuperOf(f.red, kit.Pod(behind, "ended-below")))).To(Succeed())
		f.restartElsewhere(ctx)
		red.changes(ctx, much)
		compact(ctx, filepath.Join(f.elsewhere.Dir, "etcd-tenants", "client.sock"), resourceVersion(ctx, f.red))
		Expect(watchFrom(ctx, f.red, known)).To(MatchError(apierrors.IsResourceExpired, "expired"), "the syncer has to list again")

		Expect(f.far.Resume()).To(Succeed())
		Expect(f.super.Resume()).To(Succeed())
		Eventually(podNames).WithContext(ctx).WithArguments(f.red.Client, behind).WithTimeout(recovery).Should(BeEmpty())
		f.shouldBeWhole(ctx, []*load{red, blue})
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(f.red, service(behind, "deleted-below")))).To(Succeed())
	})
}

// restartElsewhere restarts the process of red's control plane. It keeps its
// data and its port.
func (f *faults) restartElsewhere(ctx context.Context) {
	GinkgoHelper()
	Expect(f.elsewhere.Stop()).To(Succeed())
	again, err := local.Start(ctx, f.elsewhere.Dir, otherHost...)
	Expect(err).NotTo(HaveOccurred())
	f.elsewhere = again
	// An apiserver that has just started briefly rejects Services, since its
	// range of addresses seems full.
	probe := service(metav1.NamespaceDefault, "probe")
	Eventually(f.red.Client.Create).WithContext(ctx).WithArguments(probe).WithTimeout(2 * kit.Soon).Should(Succeed())
	Expect(f.red.Client.Delete(ctx, probe)).To(Succeed())
}

// compact deletes the revisions of an etcd before a resource version. It is a
// call of gRPC, so that the tests need no client of etcd.
func compact(ctx context.Context, socket, resourceVersion string) {
	GinkgoHelper()
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	message := binary.AppendUvarint([]byte{1 << 3}, revision)               // field 1 of CompactionRequest
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // not compressed
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/etcdserverpb.KV/Compact", bytes.NewReader(append(frame, message...)))
	Expect(err).NotTo(HaveOccurred())
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	response, err := transport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	Expect(io.ReadAll(response.Body)).NotTo(BeEmpty())
	Expect(response.Trailer.Get("Grpc-Status")).To(Equal("0"), response.Trailer.Get("Grpc-Message"))
}

// resourceVersion returns the resource version at which a watch of a tenant's
// pods would start now.
func resourceVersion(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(t.Client.List(ctx, list)).To(Succeed())
	return list.ResourceVersion
}

// watchFrom returns the first error of a watch of a tenant's pods from a
// resource version.
func watchFrom(ctx context.Context, t *local.Tenant, resourceVersion string) error {
	GinkgoHelper()
	w, err := t.Client.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}})
	if err != nil {
		return err
	}
	defer w.Stop()
	event := watch.Event{}
	Eventually(w.ResultChan()).WithContext(ctx).Should(Receive(&event))
	return apierrors.FromObject(event.Object)
}
