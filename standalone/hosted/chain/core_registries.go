package chain

import (
	"errors"
	"maps"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	volumestore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// addCore adds the registries of the core API group that a generic control
// plane does not have. It repeats NewRESTStorage of upstream's legacy provider,
// and takes the registries that the parts of tenants use.
func (c *Chain) addCore(options generic.RESTOptionsGetter, resources map[string]rest.Storage) error {
	return errors.Join(c.addPods(options, resources), c.addNodesAndServices(options, resources), addOthers(options, resources))
}

func (c *Chain) addPods(options generic.RESTOptionsGetter, resources map[string]rest.Storage) error {
	pods, err := podstore.NewStorage(options, nil, nil, nil, authorizers{c})
	if err != nil {
		return err
	}
	c.core.pods = pods.Pod
	maps.Copy(resources, map[string]rest.Storage{
		"pods": pods.Pod, "pods/status": pods.Status, "pods/binding": pods.Binding, "pods/ephemeralcontainers": pods.EphemeralContainers,
		"pods/attach": pods.Attach, "pods/log": pods.Log, "pods/exec": pods.Exec, "pods/portforward": pods.PortForward,
		"pods/proxy": pods.Proxy, "pods/eviction": pods.Eviction, "bindings": pods.LegacyBinding,
	})
	if utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodVerticalScaling) {
		resources["pods/resize"] = pods.Resize
	}
	return nil
}

func (c *Chain) addNodesAndServices(options generic.RESTOptionsGetter, resources map[string]rest.Storage) (err error) {
	if c.core.endpoints, err = endpointsstore.NewREST(options); err != nil {
		return err
	}
	// Each tenant writes Services by a registry with its own allocators.
	none := map[api.IPFamily]ipallocator.Interface{api.IPv4Protocol: nil}
	services, serviceStatus, serviceProxy, err := servicestore.NewREST(
		options, api.IPv4Protocol, none, nil, c.core.endpoints, c.core.pods, nil)
	if err != nil {
		return err
	}
	c.core.services = services
	nodes, err := nodestore.NewStorage(options, c.config.KubeAPIs.KubeletClientConfig, c.config.KubeAPIs.ControlPlane.ProxyTransport)
	if err != nil {
		return err
	}
	c.core.nodes = nodes.Node
	maps.Copy(resources, map[string]rest.Storage{
		"endpoints": c.core.endpoints,
		"services":  services, "services/status": serviceStatus, "services/proxy": serviceProxy,
		"nodes": nodes.Node, "nodes/status": nodes.Status, "nodes/proxy": nodes.Proxy,
	})
	return nil
}

func addOthers(options generic.RESTOptionsGetter, resources map[string]rest.Storage) error {
	templates, err := podtemplatestore.NewREST(options)
	if err != nil {
		return err
	}
	limits, err := limitrangestore.NewREST(options)
	if err != nil {
		return err
	}
	volumes, volumeStatus, err := volumestore.NewREST(options)
	if err != nil {
		return err
	}
	claims, claimStatus, err := claimstore.NewREST(options)
	if err != nil {
		return err
	}
	controllers, err := controllerstore.NewStorage(options)
	if err != nil {
		return err
	}
	maps.Copy(resources, map[string]rest.Storage{
		"podtemplates": templates, "limitranges": limits,
		"persistentvolumes": volumes, "persistentvolumes/status": volumeStatus,
		"persistentvolumeclaims": claims, "persistentvolumeclaims/status": claimStatus,
		"replicationcontrollers": controllers.Controller, "replicationcontrollers/status": controllers.Status,
		"replicationcontrollers/scale": controllers.Scale,
	})
	return nil
}
