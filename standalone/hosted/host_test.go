package hosted

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		opts      Options
		want      string
		advertise string
	}{
		"defaults":             {opts: Options{Dir: "d"}, advertise: "127.0.0.1"},
		"an address":           {opts: Options{Dir: "d", Listen: "127.0.0.2"}, advertise: "127.0.0.2"},
		"every address":        {opts: Options{Dir: "d", Listen: "0.0.0.0"}, advertise: "127.0.0.1"},
		"every IPv6 address":   {opts: Options{Dir: "d", Listen: "::"}, advertise: "127.0.0.1"},
		"a name for clients":   {opts: Options{Dir: "d", Listen: "0.0.0.0", Advertise: "vc.example"}, advertise: "vc.example"},
		"no directory":         {opts: Options{}, want: "needs a directory"},
		"a name to listen on":  {opts: Options{Dir: "d", Listen: "localhost"}, want: "not an IP address"},
		"a port to listen on":  {opts: Options{Dir: "d", Listen: "127.0.0.1:80"}, want: "not an IP address"},
		"a store without room": {opts: Options{Dir: "d", StoreBytes: 1000}, want: "too small"},
		"a negative size":      {opts: Options{Dir: "d", StoreBytes: -1}, want: "too small"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := test.opts.complete()
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(test.opts.Advertise).To(Equal(test.advertise))
			g.Expect(test.opts.StoreBytes).To(BeEquivalentTo(8 << 30))
		})
	}
}

// TestANameIsTakenUntilAllItsDeletionsEnd: the second one would delete what was
// run after the first.
func TestANameIsTakenUntilAllItsDeletionsEnd(t *testing.T) {
	g := NewWithT(t)
	h := newHost(Options{})
	h.beginDelete("red")
	h.beginDelete("red")
	h.endDelete("red")
	g.Expect(h.admit("red")).To(MatchError(ContainSubstring("being deleted")))
	g.Expect(h.admit("blue")).To(Succeed())
	h.endDelete("red")
	g.Expect(h.admit("red")).To(Succeed())
	h.stopping = true
	g.Expect(h.admit("red")).To(MatchError(ContainSubstring("the host is stopping")))
}

// TestAHostEndsWithItsStore: control planes cannot continue without it, and the
// next start of the host finds the port and the data unused.
func TestAHostEndsWithItsStore(t *testing.T) {
	g := NewWithT(t)
	opts := storeOptions(t.TempDir())
	ip, err := opts.complete()
	g.Expect(err).NotTo(HaveOccurred())
	h := newHost(opts)
	h.router, err = listenRouter(ip, 0, "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	h.stores = openStores(t, opts)
	lost := make(chan struct{})
	h.stores.tenants.followers = []func(context.Context) error{func(context.Context) error {
		<-lost
		return quota.ErrLagging
	}}
	h.serve(t.Context())
	plane, err := h.Run(Spec{Name: "red"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(plane.Ready(), time.Minute).Should(BeClosed())
	g.Expect(h.Err()).NotTo(HaveOccurred())

	close(lost)
	g.Eventually(h.Done(), time.Minute).Should(BeClosed())
	g.Expect(h.Err()).To(MatchError(quota.ErrLagging))
	g.Expect(plane.Done()).To(BeClosed())
	g.Expect(h.Stop(t.Context())).To(Succeed())
	_, err = h.Run(Spec{Name: "blue"})
	g.Expect(err).To(MatchError(ContainSubstring("the host is stopping")))
	g.Expect(h.Delete(t.Context(), "red")).NotTo(Succeed(), "its data is out of reach")

	port, err := strconv.Atoi(h.router.port())
	g.Expect(err).NotTo(HaveOccurred())
	again, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Close()).To(Succeed())
	closeStores(t, openStores(t, opts))
}
