// Package store manages what the etcd of an installation needs: the certificates
// of its members and of vc-host, and the ControlPlaneStore by which vc-host finds
// it.
package store

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Name is that of the ControlPlaneStore.
const Name = "default"

// MaxMembers is how many members etcd is to have at most.
const MaxMembers = 9

// The certificates, by the suffix of the names of their Secrets.
const (
	authority = "authority"
	members   = "members"
	clients   = "client"
)

// clientPort is where members serve clients.
const clientPort = "2379"

// Store is the etcd of an installation: a StatefulSet.
type Store struct {
	// Service is the headless Service of the members, with the name of the
	// StatefulSet. The Service of a member for clients has the name of its pod.
	Service types.NamespacedName
	// Members is how many replicas it has.
	Members int
	// Quota is the size up to which etcd accepts writes.
	Quota resource.QuantityValue
}

// Defaults returns a store of one member, without a name.
func Defaults() Store {
	return Store{Members: 1, Quota: resource.QuantityValue{Quantity: resource.MustParse("8Gi")}}
}

// Validate reports what is wrong with a store.
func (s Store) Validate() error {
	if s.Members < 1 || s.Members > MaxMembers {
		return fmt.Errorf("an etcd has 1 to %d members, not %d", MaxMembers, s.Members)
	}
	if s.Quota.Cmp(resource.MustParse("64Mi")) < 0 || s.Quota.Cmp(resource.MustParse("1Ti")) > 0 {
		return fmt.Errorf("the quota of an etcd is 64Mi to 1Ti, not %s", s.Quota.String())
	}
	return nil
}

// hosts returns the names of the members: those of their pods, by which they
// find each other, and those for clients.
func (s Store) hosts() []string {
	return slices.Concat(s.names("."+s.Service.Name), s.names(""))
}

// endpoints returns the URLs of the members for clients. Each has a Service of
// its own, whose address stays the same when the pod is replaced.
func (s Store) endpoints() []string {
	urls := s.names("")
	for i, host := range urls {
		urls[i] = "https://" + host + ":" + clientPort
	}
	return urls
}

// names returns a name of each member in a subdomain of the namespace.
func (s Store) names(subdomain string) []string {
	names := make([]string, s.Members)
	for i := range names {
		names[i] = s.Service.Name + "-" + strconv.Itoa(i) + subdomain + "." + s.Service.Namespace + ".svc"
	}
	return names
}

// secret returns the name of the Secret of a certificate.
func (s Store) secret(of string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Service.Namespace, Name: s.Service.Name + "-" + of}
}
