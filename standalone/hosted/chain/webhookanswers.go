package chain

import (
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/webhookanswers"
)

// boundAnswers bounds what the clients of webhooks accept.
func boundAnswers(clients webhook.AuthenticationInfoResolverWrapper) webhook.AuthenticationInfoResolverWrapper {
	return func(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		unbound := clients(delegate)
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				return withBoundAnswers(unbound.ClientConfigFor(hostPort))
			},
			ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
				return withBoundAnswers(unbound.ClientConfigForService(name, namespace, port))
			},
		}
	}
}

// withBoundAnswers changes a copy: a configuration may be that of all requests to
// the apiserver itself.
func withBoundAnswers(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(webhookanswers.Bound)
	return config, nil
}
