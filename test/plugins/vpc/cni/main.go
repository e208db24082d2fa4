// Command cni is a plugin of CNI in the place of the node's bridge: a pod of a
// VPC is connected to the bridge of that, with the address that the provider
// has chosen, and any other pod to the bridge of the configuration.
package main

import (
	"context"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

// bridge is the plugin that connects pods.
const bridge = "bridge"

func main() {
	funcs := skel.CNIFuncs{Add: add, Del: remove, Check: check}
	skel.PluginMainFuncs(funcs, version.PluginSupports("1.0.0"), "pods of VPCs")
}

func add(args *skel.CmdArgs) error {
	conf, err := bridgeOf(args.StdinData)
	if err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), bridge, conf, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

func remove(args *skel.CmdArgs) error {
	conf, err := bridgeOf(args.StdinData)
	if err != nil {
		return err
	}
	return invoke.DelegateDel(context.Background(), bridge, conf, nil)
}

func check(args *skel.CmdArgs) error {
	conf, err := bridgeOf(args.StdinData)
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.Background(), bridge, conf, nil)
}
