package project

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestServer(t *testing.T) {
	for server, want := range map[string]string{
		"https://gw":                           "https://gw/tenants/shop",
		"https://gw:8443/":                     "https://gw:8443/tenants/shop",
		"https://gw/tenants/projects":          "https://gw/tenants/shop",
		"https://gw/tenants/team-0a1b2c-red/":  "https://gw/tenants/shop",
		"https://proxy/gw/tenants/red/api/...": "https://proxy/gw/tenants/shop",
	} {
		if got := Server(server, "shop"); got != want {
			t.Errorf("%s: got %s, want %s", server, got, want)
		}
	}
}

func kubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["gw"] = &clientcmdapi.Cluster{Server: "https://gw/tenants/projects", CertificateAuthorityData: []byte("ca")}
	config.AuthInfos["jane"] = &clientcmdapi.AuthInfo{Token: "secret"}
	for _, name := range []string{"work", "other"} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "gw", AuthInfo: "jane", Namespace: "web"}
	}
	config.CurrentContext = "work"
	return config
}

// stored returns a kubeconfig as it is after it was written and read.
func stored(t *testing.T, config *clientcmdapi.Config) *clientcmdapi.Config {
	t.Helper()
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	read, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestUse: a context has the default project that was set last, and all others
// stay as they are.
func TestUse(t *testing.T) {
	config := stored(t, kubeconfig())
	if Current(config, "work") != "" || Current(config, "none") != "" {
		t.Error("a context has a default project from the beginning")
	}
	for _, name := range []string{"shop", "shop", "store"} {
		if err := Use(config, "work", name); err != nil {
			t.Fatal(err)
		}
		config = stored(t, config)
		server := config.Clusters[config.Contexts["work"].Cluster]
		if Current(config, "work") != name || server.Server != "https://gw/tenants/"+name || string(server.CertificateAuthorityData) != "ca" {
			t.Errorf("got %q at %+v, want %q", Current(config, "work"), server, name)
		}
		if Current(config, "other") != "" || config.Contexts["other"].Cluster != "gw" || len(config.Clusters) != 2 {
			t.Errorf("another context or cluster has changed: %+v", config)
		}
	}
	if before, err := Unset(config, "work"); err != nil || before != "store" {
		t.Errorf("got %q, %v", before, err)
	}
	if diff := cmp.Diff(stored(t, kubeconfig()), stored(t, config)); diff != "" {
		t.Error(diff)
	}
	if _, err := Unset(config, "work"); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestUseRefuses(t *testing.T) {
	for name, change := range map[string]func(*clientcmdapi.Config){
		"no context": func(c *clientcmdapi.Config) { delete(c.Contexts, "work") },
		"no cluster": func(c *clientcmdapi.Config) { delete(c.Clusters, "gw") },
		"a name that is taken": func(c *clientcmdapi.Config) {
			c.Clusters["work/project"] = &clientcmdapi.Cluster{Server: "https://mine"}
		},
	} {
		config := kubeconfig()
		change(config)
		before := config.DeepCopy()
		if err := Use(config, "work", "shop"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if diff := cmp.Diff(before, config); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
