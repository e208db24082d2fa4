package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	informers "k8s.io/client-go/informers/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
)

// withoutLeftovers are Endpoints that are not listed. Upstream's controller
// lists them only when it starts, to delete those without a Service: they could
// be left from before. A controller that runs by need starts often, and would
// delete Endpoints that users have created. None are left in fact: the registry
// of Services deletes those of a deleted Service.
type withoutLeftovers struct{ informers.EndpointsInformer }

// Lister implements informers.EndpointsInformer.
func (w withoutLeftovers) Lister() listers.EndpointsLister {
	return gettable{w.EndpointsInformer.Lister()}
}

// gettable only has the Endpoints that are read by name.
type gettable struct{ listers.EndpointsLister }

// List implements listers.EndpointsLister.
func (gettable) List(labels.Selector) ([]*corev1.Endpoints, error) { //nolint:staticcheck // a controller of upstream reads them
	return nil, nil
}
