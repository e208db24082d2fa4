package hosted

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// setFrontProxyOptions makes the apiserver send aggregated APIs the user of a
// request, and a certificate that proves that it may do so.
func setFrontProxyOptions(o *options.ServerRunOptions, creds *credentials) {
	o.ProxyClientCertFile, o.ProxyClientKeyFile = creds.path(frontProxyFile), creds.path(frontProxyFile)
	o.Authentication.RequestHeader = &genericoptions.RequestHeaderAuthenticationOptions{
		ClientCAFile:        creds.path(publicFrontProxyCAFile),
		AllowedNames:        []string{chain.FrontProxyUser},
		UsernameHeaders:     []string{chain.FrontProxyUserHeader},
		GroupHeaders:        []string{chain.FrontProxyGroupHeader},
		ExtraHeaderPrefixes: []string{chain.FrontProxyExtraHeaders},
	}
}

// watchNoFrontProxyFiles prevents the apiserver from watching the authorities'
// files, which never change: each watch takes one of the few inotify instances
// of a user, and there are many control planes. It does not prevent the watch
// of the client certificate: upstream offers no way to do so.
func watchNoFrontProxyFiles(config *app.Config, creds *credentials) error {
	users, err := dynamiccertificates.NewStaticCAContent("client CA", creds.authority.CertPEM)
	if err != nil {
		return fmt.Errorf("read %s: %w", creds.path(authorityFile), err)
	}
	proxies, err := dynamiccertificates.NewStaticCAContent("front proxy CA", creds.frontProxy.CertPEM)
	if err != nil {
		return fmt.Errorf("read %s: %w", creds.path(frontProxyCAFile), err)
	}
	controlPlane := config.KubeAPIs.ControlPlane
	release(controlPlane.ClusterAuthenticationInfo.RequestHeaderCA)
	controlPlane.ClusterAuthenticationInfo.RequestHeaderCA = proxies
	controlPlane.Generic.SecureServing.ClientCA = dynamiccertificates.NewUnionCAContentProvider(users, proxies)
	return nil
}

// release stops the watch that upstream has started.
func release(content dynamiccertificates.CAContentProvider) {
	if watcher, ok := content.(dynamiccertificates.ControllerRunner); ok {
		ended, end := context.WithCancel(context.Background())
		end()
		watcher.Run(ended, 1)
	}
}
