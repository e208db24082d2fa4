package provisioner

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// TestFailingControllers: another error of the same controller is no change,
// so that one that fails again and again causes one event.
func TestFailingControllers(t *testing.T) {
	g := NewWithT(t)
	var f failingControllers
	g.Expect(f.observe(nil)).To(BeFalse())
	g.Expect(f.report().Failing).To(BeEmpty())
	g.Expect(f.observe(map[string]error{"b": errors.New("panic"), "a": errors.New("exited")})).To(BeTrue())
	g.Expect(f.report().Failing).To(Equal("a: exited; b: panic"))
	g.Expect(f.observe(map[string]error{"b": errors.New("other"), "a": errors.New("other")})).To(BeFalse())
	g.Expect(f.observe(map[string]error{"b": errors.New("other")})).To(BeTrue())
	g.Expect(f.report().Failing).To(Equal("b: other"))
	g.Expect(f.observe(nil)).To(BeTrue())
	g.Expect(f.report().Failing).To(BeEmpty())
}
