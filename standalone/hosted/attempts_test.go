package hosted

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAttemptsAreCountedUntilForgotten(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(attemptsIn(dir).count()).To(BeZero())
	g.Expect(attemptsIn(dir).begin()).To(Succeed())
	g.Expect(attemptsIn(dir).begin()).To(Succeed())
	g.Expect(attemptsIn(dir).count()).To(Equal(2))
	g.Expect(attemptsIn(dir).forget()).To(Succeed())
	g.Expect(attemptsIn(dir).forget()).To(Succeed(), "a second time")
	g.Expect(attemptsIn(dir).count()).To(BeZero())
	g.Expect(os.WriteFile(attemptsIn(dir).file, []byte("garbage"), 0o600)).To(Succeed())
	g.Expect(attemptsIn(dir).count()).To(Equal(1))
}
