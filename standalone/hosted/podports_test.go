package hosted

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParsePortRange(t *testing.T) {
	for text, want := range map[string]PortRange{
		"": {}, "20000-29999": {20000, 29999}, "1-1": {1, 1}, "1-65535": {1, 65535},
	} {
		if got, err := ParsePortRange(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"20000", "-", "0-1", "2-1", "1-65536", "-1-5", "a-b", "1-2-3", " 1-2"} {
		if got, err := ParsePortRange(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestPortsAreUsedUp: each port of a range is used once, and again when it is
// free.
func TestPortsAreUsedUp(t *testing.T) {
	g := NewWithT(t)
	loopback := net.IPv4(127, 0, 0, 1)
	free, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(free.Close()).To(Succeed())
	only := PortRange{portOf(free), portOf(free)}

	first, err := only.listen(loopback)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(portOf(first)).To(Equal(only.First))
	_, err = only.listen(loopback)
	g.Expect(err).To(MatchError(ErrNoPodPort))
	g.Expect(err).To(MatchError(ContainSubstring(only.String())))
	g.Expect(first.Close()).To(Succeed())
	again, err := only.listen(loopback)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Close()).To(Succeed())

	_, err = PortRange{1, 2}.listen(net.IPv4(192, 0, 2, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(ErrNoPodPort), "it is not the port that is missing")
}
