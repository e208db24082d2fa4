// Package resources declares each kind that is synced: its direction and its
// translation, in one file of pure functions for each kind.
package resources

import (
	"k8s.io/apimachinery/pkg/api/equality"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// All returns all kinds that the syncer syncs. The agent serves the kubelet API
// of virtual nodes; pods are the address ranges of the super cluster's pods.
func All(agent Agent, pods Ranges) []kinds.Flow {
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

// networkLabel is the label for the network of a pod or service, and
// defaultNetwork its default.
const (
	networkLabel   = networkv1.Label
	defaultNetwork = "default"
)

// networkLabels returns the initial labels of a copy: a network that the tenant
// sets overrides the default.
func networkLabels() map[string]string {
	return map[string]string{networkLabel: defaultNetwork}
}

// semanticEqual compares values semantically, as the API does: an empty map
// equals nil.
func semanticEqual(a, b any) bool {
	return equality.Semantic.DeepEqual(a, b)
}
