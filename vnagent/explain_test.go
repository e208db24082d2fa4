package vnagent

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestExplain(t *testing.T) {
	o := order{
		target: target{call: callExec, namespace: "shop", pod: "web", container: "app"},
		tenant: tenant{key: "tenants-c0ffee-red", name: "red"},
		pod:    types.NamespacedName{Namespace: "tenants-c0ffee-red-shop", Name: "web"},
	}
	status := func(code int, message string) string {
		data, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Code: int32(code), Message: message})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, tc := range map[string]struct {
		code     int
		body     string
		wantCode int
		want     string
	}{
		"what the kubelet says": {500, "container not found (\"app\")\n", 500, `container not found ("app")`},
		"of a path on the node": {
			404, "no file /var/log/pods/tenants-c0ffee-red-shop_web_1/app/0.log", 404, "no file /var/log/pods/shop_web_1/app/0.log",
		},
		"an invalid request": {
			400, status(400, `container "app" in pod "web" is waiting to start: ContainerCreating`),
			400, `container "app" in pod "web" is waiting to start: ContainerCreating`,
		},
		"of the namespace": {404, status(404, `pods "web" not found in tenants-c0ffee-red-shop`), 404, `pods "web" not found in shop`},
		"a node that does not answer": {
			500, status(500, `error dialing backend: dial tcp 10.1.2.3:10250: connect: connection refused`), 500, unavailable,
		},
		"a proxy without a node": {502, status(502, `Get "https://10.1.2.3:10250/containerLogs/tenants-c0ffee-red-shop/web/app"`), 500, unavailable},
		"a right that is missing": {
			403, status(403, `User "system:serviceaccount:vc-system:vn-agent" cannot create resource "pods/exec" in tenants-c0ffee-red-shop`), 500, unavailable,
		},
		"a kubelet that refuses": {401, "Unauthorized", 500, unavailable},
		"nothing":                {503, "", 500, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			err := explain(o, &http.Response{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body))})
			got := asRefusal(err)
			if got.code != tc.wantCode || got.message != tc.want {
				t.Errorf("got %d %q", got.code, got.message)
			}
		})
	}
}
