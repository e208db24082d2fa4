package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// TestPublicDocuments: only reads of the two documents of a tenant with a public
// issuer need no credentials.
func TestPublicDocuments(t *testing.T) {
	const configuration, keys = "/.well-known/openid-configuration", "/openid/v1/jwks"
	index := tenants.NewIndex(types.NamespacedName{Name: "private"})
	for name, access := range map[string]gatewayaccess.Access{
		"public": {OpenIDConfiguration: []byte(`{"issuer":"a"}`), KeySet: []byte(`{"keys":[]}`)}, "private": {},
	} {
		access.Server = "https://127.0.0.1:1"
		index.Set(types.NamespacedName{Name: name}, must(tenants.New(name, access, nil, true)))
	}
	index.SetHolder("shop", &types.NamespacedName{Name: "public"})
	t.Cleanup(index.Close)
	h := &Handler{
		Domain: "gw.example.com", Index: index, Limits: Limits{Requests: 1, Streams: 1, Body: 1},
		Metrics: must(NewMetrics(prometheus.NewRegistry())), Log: logr.Discard(),
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, tc := range []struct {
		method, host, path, want string
	}{
		{http.MethodGet, "", "/tenants/public" + configuration, `{"issuer":"a"}`},
		{http.MethodGet, "", "/tenants/public" + keys, `{"keys":[]}`},
		{http.MethodHead, "", "/tenants/public" + keys, ""},
		{http.MethodGet, "", "/tenants/shop" + keys, `{"keys":[]}`},
		{http.MethodGet, "public.gw.example.com", keys, `{"keys":[]}`},
		{http.MethodPost, "", "/tenants/public" + keys, "refused"},
		{http.MethodGet, "", "/tenants/public" + keys + "/", "refused"},
		{http.MethodGet, "", "/tenants/public/openid/v1", "refused"},
		{http.MethodGet, "", "/tenants/private" + keys, "refused"},
		{http.MethodGet, "", "/tenants/unknown" + keys, "refused"},
		{http.MethodGet, "", keys, "refused"},
		{http.MethodGet, "private.gw.example.com", "/tenants/public" + keys, "refused"},
	} {
		r := must(http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.path, nil))
		r.Host = tc.host
		response := must(http.DefaultClient.Do(r))
		body := must(io.ReadAll(response.Body))
		_ = response.Body.Close()
		if refused := response.StatusCode != http.StatusOK; refused != (tc.want == "refused") || !refused && string(body) != tc.want {
			t.Errorf("%s %s%s: %d %s", tc.method, tc.host, tc.path, response.StatusCode, body)
		}
	}
}
