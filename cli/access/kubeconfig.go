package access

import (
	"maps"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ContextName returns the name of the cluster, the user and the context of a
// tenant in a kubeconfig. No two VirtualClusters have the same.
func ContextName(vc client.ObjectKey) string { return "vc/" + vc.Namespace + "/" + vc.Name }

// Kubeconfig returns a kubeconfig for the server of a configuration. It has
// nothing but one context: other contents of the kubeconfig that the
// configuration was read from are dropped.
func Kubeconfig(vc client.ObjectKey, config *rest.Config, user *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	name := ContextName(vc)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = user
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return kubeconfig
}

// Permanent returns the credentials of a configuration.
func Permanent(config *rest.Config) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
		ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
	}
}

// Merge adds the context of a kubeconfig to another one and replaces the entries
// of its name. The current context stays as it is.
func Merge(into, tenant *clientcmdapi.Config) *clientcmdapi.Config {
	merged := into.DeepCopy()
	maps.Copy(merged.Clusters, tenant.Clusters)
	maps.Copy(merged.AuthInfos, tenant.AuthInfos)
	maps.Copy(merged.Contexts, tenant.Contexts)
	return merged
}
