package hosted

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// TestReportOfAPanic: without the stack, its place would not be known.
func TestReportOfAPanic(t *testing.T) {
	g := NewWithT(t)
	var log string
	s := &chains{log: funcr.New(func(_, args string) { log += args }, funcr.Options{})}
	panicked := func() (err error) {
		defer views.Recovered(func(panicked error) { err = panicked })
		panic("broken")
	}()
	s.report("red", fmt.Errorf("handle a change: %w", panicked))
	g.Expect(log).To(And(ContainSubstring(`"controlPlane"="red"`), ContainSubstring("panic: broken"), ContainSubstring("TestReportOfAPanic")))
	log = ""
	s.report("red", errors.New("failed"))
	g.Expect(log).To(And(ContainSubstring("failed"), Not(ContainSubstring("stack"))))
}
