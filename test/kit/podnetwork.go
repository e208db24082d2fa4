package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// lastPod is the last number of an address in the network of pods with servers.
var lastPod atomic.Int32

// podAddress returns an address in a network of this process that leads to this
// machine without being an address of it: of the range for benchmarks (RFC 2544),
// where real nodes have the other half, and simulated nodes the third number 0.
func podAddress(last int32) string {
	return fmt.Sprintf("198.18.%d.%d", 1+os.Getpid()%255, last)
}

// PodAddress returns an address for a pod with a server, which leads to this
// machine until the container of specs ends.
func PodAddress(ctx context.Context) string {
	GinkgoHelper()
	UsePodNetwork(ctx)
	return NextPodAddress()
}

// UsePodNetwork makes the addresses of NextPodAddress lead to this machine until
// the container of specs ends.
func UsePodNetwork(ctx context.Context) {
	GinkgoHelper()
	if os.Geteuid() != 0 {
		Skip("a network of pods on this machine needs root")
	}
	route := []string{"local", podAddress(0) + "/24", "dev", "lo"}
	out, err := exec.CommandContext(ctx, "ip", append([]string{"route", "replace"}, route...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	DeferCleanup(func(ctx SpecContext) {
		_ = exec.CommandContext(ctx, "ip", append([]string{"route", "delete"}, route...)...).Run() // another user's end may have done it
	})
}

// NextPodAddress returns an address that no pod of this process has had.
func NextPodAddress() string { return podAddress(lastPod.Add(1)) }
