package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// SuperCluster says which of its own users reach the super cluster through the
// gateway.
type SuperCluster string

// The values of SuperCluster.
const (
	// NoUsers: none do.
	NoUsers SuperCluster = "None"
	// Tokens: those with a token, which is forwarded unchanged.
	Tokens SuperCluster = "Tokens"
	// Impersonation: those with a client certificate, too, whom the gateway
	// impersonates, as far as its RBAC permits.
	Impersonation SuperCluster = "Impersonation"
)

func (s SuperCluster) validate() error {
	if all := []SuperCluster{NoUsers, Tokens, Impersonation}; !slices.Contains(all, s) {
		return fmt.Errorf("--super-cluster is %q: it must be one of %v", s, all)
	}
	return nil
}

// clientCAName is the ConfigMap in which an apiserver publishes the CA of its
// client certificates, and clientCAKey the key.
const (
	clientCAName = "extension-apiserver-authentication"
	clientCAKey  = "client-ca-file"
)

// superCluster keeps the super cluster in the index, as a tenant that has the
// name resolve.System.
type superCluster struct {
	config *rest.Config
	// open: its users reach it, those of client certificates if the gateway
	// impersonates.
	open, impersonates bool
	index              *tenants.Index
	log                logr.Logger

	// authorities has the CA of its client certificates; nil if these lead nowhere.
	authorities *dynamiccertificates.ConfigMapCAController
}

// addSuperCluster adds what makes the super cluster a target, and recognizes its
// users by their certificates, if they use the gateway.
func addSuperCluster(mgr manager.Manager, config *rest.Config, options Options, index *tenants.Index) error {
	if !options.hasSuperUsers() {
		return nil
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the super cluster: %w", err)
	}
	s := &superCluster{
		config: config, index: index, log: mgr.GetLogger(),
		open: options.SuperCluster != NoUsers, impersonates: options.SuperCluster == Impersonation,
	}
	if s.impersonates || options.Projects {
		s.authorities, err = dynamiccertificates.NewDynamicCAFromConfigMapController(
			"super-cluster", metav1.NamespaceSystem, clientCAName, clientCAKey, clients)
		if err != nil {
			return fmt.Errorf("follow the client CA of the super cluster: %w", err)
		}
		s.authorities.AddListener(s)
	}
	if err := s.set(nil); err != nil {
		return err
	}
	return mgr.Add(s)
}

// NeedLeaderElection says that all replicas do it.
func (*superCluster) NeedLeaderElection() bool { return false }

// Start follows the CA of client certificates until ctx ends.
func (s *superCluster) Start(ctx context.Context) error {
	if s.authorities != nil {
		s.authorities.Run(ctx, 1)
	}
	return nil
}

// Enqueue implements dynamiccertificates.Listener: the CA has changed.
func (s *superCluster) Enqueue() {
	authorities, err := cert.ParseCertsPEM(s.authorities.CurrentCABundleContent())
	if err == nil {
		err = s.set(authorities)
	}
	if err != nil {
		s.log.Error(err, "Failed to use the client CA of the super cluster")
	}
}

func (s *superCluster) set(authorities []*x509.Certificate) error {
	way, err := forward.NewSuperWay(s.config, s.impersonates)
	if err != nil {
		return err
	}
	s.index.Set(types.NamespacedName{Name: resolve.System}, tenants.NewSuper(way, authorities, s.open))
	return nil
}

// newReviewer makes what asks the super cluster whose tokens are.
func newReviewer(super *rest.Config) (*identity.Reviewer, error) {
	clients, err := authenticationclient.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("make a client of token reviews: %w", err)
	}
	return identity.NewReviewer(clients.TokenReviews()), nil
}
