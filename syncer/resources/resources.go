// Package resources says for each kind which way it flows and what changes on the way: one value a file, of pure functions.
package resources

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// All is every kind that the syncer carries. What is asked of the nodes that tenants are shown goes to the agent; pods are the
// addresses of the super cluster's pods.
func All(agent Agent, pods PodRanges) []kinds.Flow {
	return []kinds.Flow{
		Namespace(),
		ServiceAccount(),
		ConfigMap(),
		Secret(),
		Service(),
		Endpoints(),
		EndpointSlice(),
		Ingress(),
		NetworkPolicy(pods),
		PodDisruptionBudget(),
		ResourceClaim(),
		ResourceClaimTemplate(),
		Pod(),
		Node(agent),
		Event(),
		PersistentVolumeClaim(),
		PersistentVolume(),
		StorageClass(),
		VolumeAttributesClass(),
		CSIDriver(),
		PriorityClass(),
		IngressClass(),
		RuntimeClass(),
		DeviceClass(),
	}
}

// Keys of the network that a pod or a service belongs to, and the network of those that name none.
const (
	networkLabel   = "arktos.futurewei.com/network"
	defaultNetwork = "default"
)

// networkLabels are the labels that a copy starts with: the tenant's own network, if it names one, overrides the default.
func networkLabels() map[string]string {
	return map[string]string{networkLabel: defaultNetwork}
}

// semanticEqual compares values as the API means them: an empty map equals none.
func semanticEqual(a, b any) bool {
	return equality.Semantic.DeepEqual(a, b)
}
