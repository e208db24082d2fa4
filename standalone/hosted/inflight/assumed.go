package inflight

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// AssumedKind returns the kind as which an apiserver takes the body of a request that
// does not say it: that of the resource, except for deletions and some subresources.
// It is empty for resources that it does not decode, or not from protobuf.
func AssumedKind(info *apirequest.RequestInfo, types *nesting.Types) schema.GroupVersionKind {
	if info.Verb == "delete" || info.Verb == "deletecollection" {
		return metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	}
	switch info.Subresource {
	case "binding":
		return schema.GroupVersionKind{Version: "v1", Kind: "Binding"}
	case "eviction":
		return schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
	case "scale":
		return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	case "token":
		return schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}
	}
	return types.KindOf(schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource})
}
