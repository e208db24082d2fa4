package hosted

import (
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

// watchNoFrontProxyFiles keeps the apiserver from watching the files of the
// options, which never change: each watch takes one of the few instances of
// inotify that a user has, and there are many control planes.
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
	controlPlane.ClusterAuthenticationInfo.RequestHeaderCA = proxies
	controlPlane.Generic.SecureServing.ClientCA = dynamiccertificates.NewUnionCAContentProvider(users, proxies)
	controlPlane.Generic.DisabledPostStartHooks.Insert("aggregator-reload-proxy-client-cert")
	return nil
}
