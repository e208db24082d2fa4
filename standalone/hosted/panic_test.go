package hosted_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
)

// TestPanicsDoNotEndTheProcess: upstream catches the panics of workers and of
// requests, tells of them, and by default panics again, which in a worker is
// the end of the process and of all tenants in it.
func TestPanicsDoNotEndTheProcess(t *testing.T) {
	g := NewWithT(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer utilruntime.HandleCrash()
		panic("in a worker")
	}()
	g.Eventually(ended, soon).Should(BeClosed())

	// The outermost filter of every apiserver, around a request that panics.
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("in a request") })
	server := httptest.NewServer(genericfilters.WithPanicRecovery(broken, &apirequest.RequestInfoFactory{}))
	defer server.Close()
	for range 2 {
		answer, err := server.Client().Get(server.URL)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Body.Close()).To(Succeed())
		g.Expect(answer.StatusCode).To(Equal(http.StatusInternalServerError))
	}
}
