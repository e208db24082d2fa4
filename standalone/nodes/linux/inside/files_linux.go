package inside

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

//go:embed files
var templates embed.FS

// writeFiles writes the configuration of the programs. All of it is in memory,
// keys included.
func writeFiles(settings *Settings) error {
	parsed, err := template.ParseFS(templates, "files/*")
	if err != nil {
		return fmt.Errorf("read the programs' configuration: %w", err)
	}
	files := map[string][]byte{"ca.pem": settings.CA, "serving.pem": settings.Serving.CertPEM, "serving.key": settings.Serving.KeyPEM}
	for _, each := range parsed.Templates() {
		var text bytes.Buffer
		if err := each.Execute(&text, settings); err != nil {
			return fmt.Errorf("fill in %s: %w", each.Name(), err)
		}
		files[each.Name()] = text.Bytes()
	}
	for name, identity := range map[string]pki.KeyPair{
		"kubelet.kubeconfig": settings.Kubelet, "kube-proxy.kubeconfig": settings.KubeProxy, "node-policies.kubeconfig": settings.Policies,
	} {
		if files[name], err = kubeconfig(settings, identity); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return save(files)
}

func kubeconfig(settings *Settings, identity pki.KeyPair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["super"] = &clientcmdapi.Cluster{
		Server: settings.Server, TLSServerName: settings.ServerName, CertificateAuthorityData: settings.CA,
	}
	config.AuthInfos["node"] = &clientcmdapi.AuthInfo{ClientCertificateData: identity.CertPEM, ClientKeyData: identity.KeyPEM}
	config.Contexts["node"] = &clientcmdapi.Context{Cluster: "super", AuthInfo: "node"}
	config.CurrentContext = "node"
	return clientcmd.Write(*config)
}

func save(files map[string][]byte) error {
	for name, content := range files {
		dir := own
		if filepath.Ext(name) == ".conflist" {
			dir = filepath.Join(plugins, "net.d")
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
