package hosted_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestStartsThatFailComeLast: control planes that cannot start, and know of it
// from before, are not in the way of those that can.
func TestStartsThatFailComeLast(t *testing.T) {
	g := NewWithT(t)
	opts := options(t.TempDir())
	const broken = 6
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range broken {
		pki := filepath.Join(opts.Dir, "controlplanes", brokenName(i), "pki")
		g.Expect(os.MkdirAll(pki, 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(pki, "sa.pub"), []byte("no key"), 0o600)).To(Succeed())
		plane, err := host.Run(hosted.Spec{Name: brokenName(i), Stock: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(plane.Done()).WithTimeout(later).Should(BeClosed())
	}
	stopHost(t, host)

	host, err = hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	defer stopHost(t, host)
	all := make([]*hosted.ControlPlane, broken)
	for i := range all {
		all[i], err = host.Run(hosted.Spec{Name: brokenName(i), Stock: true})
		g.Expect(err).NotTo(HaveOccurred())
	}
	honest := make([]*hosted.ControlPlane, 3)
	for i := range honest {
		honest[i], err = host.Run(hosted.Spec{Name: fmt.Sprintf("honest-%d", i)})
		g.Expect(err).NotTo(HaveOccurred())
	}
	begin := time.Now()
	for _, plane := range honest {
		awaitReady(t, plane)
		t.Cleanup(func() { stop(t, plane) })
	}
	t.Logf("%d control planes are ready beside %d that cannot start after %s", len(honest), broken, time.Since(begin))
	for _, plane := range all {
		g.Eventually(plane.Done()).WithTimeout(later).Should(BeClosed())
		g.Expect(plane.Err()).To(HaveOccurred())
	}
}

func brokenName(i int) string { return fmt.Sprintf("broken-%d", i) }
