package kit

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// FreeAddress returns an address with a free port, see local.FreeAddress.
func FreeAddress(ctx context.Context) string {
	GinkgoHelper()
	address, err := local.FreeAddress(ctx)
	Expect(err).NotTo(HaveOccurred())
	return address
}

// MachineAddress returns an address of this machine that is not loopback:
// Kubernetes refuses loopback in most objects.
func MachineAddress() string {
	GinkgoHelper()
	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr().String()
		}
	}
	Skip("this machine has no address but loopback")
	return ""
}

// Probed returns a function that reads the status code of a health endpoint.
func Probed(ctx context.Context, address, path string) func() (int, error) {
	return func() (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
}
