package kubeconfig

import (
	"fmt"
	"testing"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestForAdmin(t *testing.T) {
	for name, c := range map[string]struct{ own, gateway, want string }{
		"a control plane":                    {"own", "", "own"},
		"a control plane behind the gateway": {"own", "gateway", "own"},
		"a converted tenant":                 {"", "gateway", "gateway"},
		"none yet":                           {},
	} {
		got := ForAdmin(map[string][]byte{names.AdminKubeconfigKey: []byte(c.own), names.GatewayKubeconfigKey: []byte(c.gateway)})
		if string(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestForUsers(t *testing.T) {
	of := func(cluster string) string {
		return fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{%s}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
			`"users":[{"name":"u","user":{"token":"t"}}],"current-context":"c"}`, cluster)
	}
	named := of(`"server":"https://red.example.com"`)
	shared := of(`"server":"https://hosts.example.com","tls-server-name":"red.vc.internal"`)
	gateway := of(`"server":"https://gw.example.com/tenants/red"`)
	for name, c := range map[string]struct{ own, gateway, want string }{
		"no gateway":                       {shared, "", shared},
		"an address that others have, too": {shared, gateway, gateway},
		"an address of its own":            {named, gateway, named},
		"one that cannot be read":          {"nothing", gateway, gateway},
	} {
		t.Run(name, func(t *testing.T) {
			got := ForUsers(map[string][]byte{names.AdminKubeconfigKey: []byte(c.own), names.GatewayKubeconfigKey: []byte(c.gateway)})
			if string(got) != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
