package chain

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// apiPriorities returns the priorities of the built-in APIs. It repeats those of
// kube-apiserver, which does not export them. A version without a priority is
// not registered.
func apiPriorities() map[schema.GroupVersion]controlplane.APIServicePriority {
	all := controlplane.DefaultGenericAPIServicePriorities()
	maps.Copy(all, map[schema.GroupVersion]controlplane.APIServicePriority{
		{Group: "apps", Version: "v1"}:              {Group: 17800, Version: 15},
		{Group: "autoscaling", Version: "v1"}:       {Group: 17500, Version: 15},
		{Group: "autoscaling", Version: "v2"}:       {Group: 17500, Version: 30},
		{Group: "batch", Version: "v1"}:             {Group: 17400, Version: 15},
		{Group: "networking.k8s.io", Version: "v1"}: {Group: 17200, Version: 15},
		{Group: "policy", Version: "v1"}:            {Group: 17100, Version: 15},
		{Group: "storage.k8s.io", Version: "v1"}:    {Group: 16800, Version: 15},
		{Group: "scheduling.k8s.io", Version: "v1"}: {Group: 16600, Version: 15},
		{Group: "node.k8s.io", Version: "v1"}:       {Group: 16300, Version: 15},
		{Group: "resource.k8s.io", Version: "v1"}:   {Group: 16200, Version: 21},
	})
	return all
}
