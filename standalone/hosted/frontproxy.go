package hosted

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// setFrontProxyOptions has the apiserver tell aggregated APIs who asks, and
// show them a certificate by which they may believe it.
func setFrontProxyOptions(o *options.ServerRunOptions, creds *credentials) {
	o.ProxyClientCertFile, o.ProxyClientKeyFile = creds.frontProxyFile(), creds.frontProxyFile()
	o.Authentication.RequestHeader = &genericoptions.RequestHeaderAuthenticationOptions{
		ClientCAFile:        creds.frontProxyCAFile(),
		AllowedNames:        []string{frontProxyClient},
		UsernameHeaders:     []string{"X-Remote-User"},
		GroupHeaders:        []string{"X-Remote-Group"},
		ExtraHeaderPrefixes: []string{"X-Remote-Extra-"},
	}
}

// watchNoFrontProxyFiles keeps the apiserver from watching the authorities'
// files, which never change: each watch takes one of the few instances of
// inotify that a user has, and there are many control planes. The file of the
// client certificate is watched: upstream has no other way to let go of it.
func watchNoFrontProxyFiles(config *app.Config, creds *credentials) error {
	users, err := dynamiccertificates.NewStaticCAContent("client CA", creds.authority.CertPEM)
	if err != nil {
		return fmt.Errorf("read the CA in %s: %w", creds.dir, err)
	}
	proxies, err := dynamiccertificates.NewStaticCAContent("front proxy CA", creds.frontProxy.CertPEM)
	if err != nil {
		return fmt.Errorf("read the front proxy CA in %s: %w", creds.dir, err)
	}
	controlPlane := config.KubeAPIs.ControlPlane
	release(controlPlane.ClusterAuthenticationInfo.RequestHeaderCA)
	controlPlane.ClusterAuthenticationInfo.RequestHeaderCA = proxies
	controlPlane.Generic.SecureServing.ClientCA = dynamiccertificates.NewUnionCAContentProvider(users, proxies)
	return nil
}

// release ends what upstream has started for a file that is not watched.
func release(content dynamiccertificates.CAContentProvider) {
	if watcher, ok := content.(dynamiccertificates.ControllerRunner); ok {
		ended, end := context.WithCancel(context.Background())
		end()
		watcher.Run(ended, 1)
	}
}
