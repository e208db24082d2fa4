// Package v1 is the API of networks, which is served in the control planes of
// tenants: a Network is a part of a tenant's cluster whose pods and Services
// belong together.
//
// +kubebuilder:object:generate=true
// +groupName=arktos.futurewei.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "arktos.futurewei.com", Version: "v1"}

// Kind and Resource are the kind of a network, and its name in paths.
const (
	Kind     = "Network"
	Resource = "networks"
)

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Network{}, &NetworkList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
