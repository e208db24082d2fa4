// Package flaky is a suite whose ordered container fails at its first attempt.
package flaky

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestFlaky(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Flaky")
}

var _ = Describe("A flaky container", Ordered, func() {
	var prepared int

	BeforeAll(func() { prepared++ })

	It("prepares", func() { prepared++ })

	It("fails once", func() {
		Expect(prepared).To(Equal(2), "the container did not run whole")
		mark := filepath.Join(os.Getenv("FLAKY_FOLDER"), "mark")
		if _, err := os.Stat(mark); err == nil {
			return
		}
		Expect(os.WriteFile(mark, nil, 0o600)).To(Succeed())
		Fail("the first attempt")
	})
})

var _ = Describe("Another container", func() {
	It("runs once", func() {
		file := filepath.Join(os.Getenv("FLAKY_FOLDER"), "once")
		_, err := os.Stat(file)
		Expect(err).To(MatchError(os.ErrNotExist))
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	})
})
