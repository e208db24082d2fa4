package chain

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// TestToItselfAlone: the control plane's own rights are for no other host, wherever a
// redirect leads.
func TestToItselfAlone(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	own := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked++
		g.Expect(CallsWebhook(r.Context())).To(BeTrue())
	})
	itself := toItself{own: transport(own, "red"), refuse: egress.Closed{}.Dialer(egress.Itself)}
	for host, isItself := range map[string]bool{
		"kubernetes.default.svc": true, "kubernetes.default.svc:443": true,
		"kubernetes.default.svc:6443": false, "kubernetes.default": false, "127.0.0.1:443": false, "example.com": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+"/apis", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		answer, err := itself.RoundTrip(request)
		if err == nil {
			g.Expect(answer.Body.Close()).To(Succeed())
		}
		g.Expect(err == nil).To(Equal(isItself), host)
	}
	g.Expect(asked).To(Equal(2))
}
