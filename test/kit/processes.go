package kit

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// killTimeout bounds the backoff of what restarts a process.
const killTimeout = 5 * Soon

// Kill kills a process that a function finds, and waits until another one has
// replaced it.
func Kill(find func() (int, error)) {
	GinkgoHelper()
	old, err := find()
	Expect(err).NotTo(HaveOccurred())
	Expect(old).NotTo(BeZero())
	Expect(syscall.Kill(old, syscall.SIGKILL)).To(Succeed())
	Eventually(find).WithTimeout(killTimeout).ShouldNot(Or(BeZero(), Equal(old)))
}
