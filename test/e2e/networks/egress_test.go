package networks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Addresses of this machine, for these specs: two outside of the super cluster,
// one of them in the range that a network opens, and that of a cloud's metadata.
const (
	outsideRange    = "203.0.113.0/24"
	outside         = "203.0.113.7"
	farther         = "198.51.100.7"
	metadataAddress = "169.254.169.254"
)

// listen serves TCP and UDP at an address that this machine gets for the
// container of specs, and returns the port.
func listen(ctx context.Context, address string) int32 {
	GinkgoHelper()
	link := func(verb string) error {
		out, err := exec.CommandContext(context.WithoutCancel(ctx), "ip", "address", verb, address+"/32", "dev", "lo").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w: %s", verb, address, err, out)
		}
		return nil
	}
	Expect(link("add")).To(Succeed())
	DeferCleanup(func() { Expect(link("del")).To(Succeed()) })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, address) })}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(func() { _ = server.Close() })
	packets, err := new(net.ListenConfig).ListenPacket(ctx, "udp", listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(packets.Close)
	go func() {
		buffer := make([]byte, 1500)
		for {
			_, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(address), from)
		}
	}()
	return int32(netip.MustParseAddrPort(listener.Addr().String()).Port())
}

// apiserverAt returns how pods reach an apiserver at its URL.
func apiserverAt(server string) endpoint {
	GinkgoHelper()
	at, err := url.Parse(server)
	Expect(err).NotTo(HaveOccurred())
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	Expect(err).NotTo(HaveOccurred())
	return endpoint{"address", "http", at.Hostname(), int32(port)}
}

// superApiserver returns how pods would reach the super cluster's apiserver.
func superApiserver(ctx context.Context) endpoint {
	GinkgoHelper()
	slice := &discoveryv1.EndpointSlice{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, slice)).To(Succeed())
	return endpoint{"address", "http", slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port}
}

var _ = Describe("What a network opens outside", Ordered, func() {
	const here = "outward"
	var (
		members map[string]*member
		// platform are servers that no tenant's pod may reach.
		platform map[string]endpoint
	)
	ports := map[string]int32{}

	BeforeAll(func(ctx SpecContext) {
		for _, address := range []string{outside, farther, metadataAddress} {
			ports[address] = listen(ctx, address)
		}
		platform = map[string]endpoint{
			"the super cluster's apiserver": superApiserver(ctx),
			"another tenant's apiserver":    apiserverAt(blue.VC.Status.PodEndpoint),
		}
		for target, at := range platform {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(at.host, fmt.Sprint(at.port)))
			Expect(err).NotTo(HaveOccurred(), target)
			Expect(connection.Close()).To(Succeed())
		}
		members = map[string]*member{}
		newNamespace(ctx, red, here)
		for _, network := range []string{closed, open, ranged, "default"} {
			members[network] = join(ctx, red, network, here)
		}
		for _, m := range members {
			m.shouldRun(ctx)
		}
	})

	// cellsTo returns the connections of one network, and whether each is made.
	cellsTo := func(network string, reached map[string]bool) []cell {
		GinkgoHelper()
		var cells []cell
		for _, address := range []string{outside, farther, metadataAddress} {
			for _, protocol := range []string{"http", "udp"} {
				cells = append(cells, cell{members[network], address, endpoint{"address", protocol, address, ports[address]}, reached[address]})
			}
		}
		for target, at := range platform {
			cells = append(cells, cell{members[network], target, at, false})
		}
		return append(cells,
			cell{members[network], "the tenant's apiserver", apiserverAt(red.VC.Status.PodEndpoint), true},
			cell{members[network], "the Service kubernetes", endpoint{"name", "http", "kubernetes.default", 443}, true},
			cell{members[network], "itself", endpoint{"name", "http", members[network].pod.Name + "." + here, serviceTCP}, true},
		)
	}

	DescribeTable("is", func(ctx SpecContext, network string, addresses ...string) {
		reached := map[string]bool{}
		for _, address := range addresses {
			reached[address] = true
		}
		cells := cellsTo(network, reached)
		Eventually(differing(those(cells, true))).WithContext(ctx).Should(BeEmpty())
		Expect(differing(cells)(ctx)).To(BeEmpty())
	},
		Entry("nothing", closed),
		Entry("everything but the platform's", open, outside, farther),
		Entry("everything but the platform's by default", "default", outside, farther),
		Entry("ranges", ranged, outside),
	)

	It("is no more although the tenant's policies allow everything", func(ctx SpecContext) {
		for _, p := range openingAll(here) {
			Expect(red.Client.Create(ctx, p)).To(Succeed())
		}
		for network, reached := range map[string]map[string]bool{
			closed: {}, open: {outside: true, farther: true}, ranged: {outside: true},
		} {
			cells := cellsTo(network, reached)
			Eventually(differing(cells)).WithContext(ctx).Should(BeEmpty())
		}
	})
})
