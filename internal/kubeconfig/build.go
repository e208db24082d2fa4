// Package kubeconfig writes the kubeconfigs that tenants' admins get, and reads
// those that others hand to us without doing what they ask for: nothing in one
// makes this process run a program, read a file or trust a server it should
// not.
package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is what it takes to use a cluster with a client certificate.
type Access struct {
	// Cluster names the cluster in the kubeconfig, for people.
	Cluster string
	// User names the user in the kubeconfig, for people; the certificate says
	// who it is.
	User string
	// Server is the URL of the apiserver.
	Server string
	// ServerName is the name that the apiserver's certificate is verified
	// against; by default the host of Server.
	ServerName string
	// CA is the certificate authority of the apiserver, in PEM.
	CA []byte
	// Certificate and Key are the user's, in PEM.
	Certificate, Key []byte
}

// Write makes a kubeconfig that holds all it needs. The same access gives the
// same bytes.
func (a Access) Write() ([]byte, error) {
	name := a.User + "@" + a.Cluster
	config := clientcmdapi.NewConfig()
	config.Clusters[a.Cluster] = &clientcmdapi.Cluster{
		Server:                   a.Server,
		TLSServerName:            a.ServerName,
		CertificateAuthorityData: a.CA,
	}
	config.AuthInfos[a.User] = &clientcmdapi.AuthInfo{
		ClientCertificateData: a.Certificate,
		ClientKeyData:         a.Key,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: a.Cluster, AuthInfo: a.User}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig of cluster %q: %w", a.Cluster, err)
	}
	return data, nil
}
