package access

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestOpen: an apiserver that cannot be reached is reached through the gateway,
// if there is one.
func TestOpen(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	const closed, none = "https://127.0.0.1:1", ""
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "red"}}
	vc.Status.ClusterNamespace = "team-red"
	for name, c := range map[string]struct{ direct, gateway, want string }{
		"directly":                {server.URL, server.URL + "/tenants/red", server.URL},
		"through the gateway":     {closed, server.URL + "/tenants/red", server.URL + "/tenants/red"},
		"not without a gateway":   {closed, none, none},
		"not if neither responds": {closed, closed + "/tenants/red", none},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-red", Name: names.AdminKubeconfigSecret}, Data: map[string][]byte{}}
			for key, host := range map[string]string{names.AdminKubeconfigKey: c.direct, names.GatewayKubeconfigKey: c.gateway} {
				if host == none {
					continue
				}
				config := &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
				data, err := clientcmd.Write(*Kubeconfig(client.ObjectKeyFromObject(vc), config, &clientcmdapi.AuthInfo{Token: "t"}))
				if err != nil {
					t.Fatal(err)
				}
				secret.Data[key] = data
			}
			super := fake.NewClientBuilder().WithObjects(secret).Build()
			admin, err := Admin(t.Context(), super, vc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Open(t.Context(), super, nil, vc, admin)
			if c.want == none {
				if err == nil {
					t.Errorf("got %s", got.Config.Host)
				}
				return
			}
			if err != nil || got.Config.Host != c.want || (got.Via == "") != (c.want == c.direct) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
