package integration

import (
	"context"
	"net/netip"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/syncer/admission"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The replicas of the webhook for converted tenants", func() {
	It("answer one at a time, behind the Service, and hand over", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "election-"}}
		kit.Create(ctx, super.Client, namespace)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, namespace)).To(Succeed()) })
		service := types.NamespacedName{Namespace: namespace.Name, Name: "webhook"}
		type replica struct {
			*admission.Active

			address netip.AddrPort
			stop    context.CancelFunc
		}
		var all sync.WaitGroup
		defer all.Wait()
		var replicas []*replica
		for _, address := range []string{"192.0.2.1:9443", "192.0.2.2:9443", "192.0.2.3:9443"} {
			r := &replica{address: netip.MustParseAddrPort(address)}
			var err error
			r.Active, err = admission.NewActive(super.Config, super.Client, service, r.address)
			Expect(err).NotTo(HaveOccurred())
			var running context.Context
			running, r.stop = context.WithCancel(context.Background())
			defer r.stop()
			all.Go(func() { _ = r.Start(running) })
			replicas = append(replicas, r)
		}
		answering := func() (active []string) {
			for _, r := range replicas {
				if r.Now() {
					active = append(active, r.address.Addr().String())
				}
			}
			return active
		}
		serving := func() ([]string, error) {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
			if err := kit.Get(ctx, super.Client, slice); err != nil {
				return nil, err
			}
			return slice.Endpoints[0].Addresses, nil
		}
		for len(replicas) > 0 {
			Eventually(answering).WithTimeout(time.Minute).Should(HaveLen(1))
			seen := time.Now()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
			Expect(kit.Get(ctx, super.Client, lease)).To(Succeed())
			Expect(seen.Sub(lease.Spec.AcquireTime.Time)).To(BeNumerically(">=", 2*time.Second),
				"it waits until its cache has what its predecessor allowed")
			active := answering()
			Expect(active).To(HaveLen(1))
			Expect(serving()).To(Equal(active))
			Consistently(answering).WithTimeout(time.Second).Should(Equal(active))
			for i, r := range replicas {
				if r.address.Addr().String() != active[0] {
					continue
				}
				r.stop()
				Eventually(r.Now).Should(BeFalse())
				replicas = append(replicas[:i:i], replicas[i+1:]...)
				break
			}
		}
	})
})
