package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// settings are what the plugin reads of its configuration, which is that of a
// bridge otherwise.
type settings struct {
	// VPCs are the gateways of the VPCs that the node is connected to, with the
	// length of the prefix, by the VPC's ID.
	VPCs map[string]netip.Prefix `json:"vpcs"`
	// RuntimeConfig has the annotations of the pod: containerd adds them for the
	// capability of that name.
	RuntimeConfig struct {
		Annotations map[string]string `json:"io.kubernetes.cri.pod-annotations"`
	} `json:"runtimeConfig"`
}

// bridgeOf returns the configuration of the bridge of a pod.
func bridgeOf(data []byte) ([]byte, error) {
	own, conf := settings{}, map[string]any{}
	if err := json.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("parse the configuration: %w", err)
	}
	if err := json.Unmarshal(data, &conf); err != nil {
		return nil, fmt.Errorf("parse the configuration: %w", err)
	}
	conf["type"] = bridge
	if chosen, has := own.RuntimeConfig.Annotations[networkv1.CNIArgsAnnotation]; has {
		args := parse(chosen)
		address, gateway, err := own.address(args)
		if err != nil {
			return nil, fmt.Errorf("connect the pod as the annotation %s says: %w", networkv1.CNIArgsAnnotation, err)
		}
		conf["bridge"] = args["vpc"]
		conf["ipam"] = map[string]any{
			"type":      "static",
			"addresses": []any{map[string]any{"address": address.String(), "gateway": gateway.String()}},
			"routes":    []any{map[string]any{"dst": "0.0.0.0/0"}},
		}
	}
	return json.Marshal(conf)
}

// address returns the address of a pod in its VPC, and the gateway of that.
func (s settings) address(args map[string]string) (netip.Prefix, netip.Addr, error) {
	gateway, known := s.VPCs[args["vpc"]]
	if !known {
		return netip.Prefix{}, netip.Addr{}, fmt.Errorf("the node is not connected to VPC %q", args["vpc"])
	}
	ip, err := netip.ParseAddr(args["ip"])
	if err != nil || !gateway.Contains(ip) {
		return netip.Prefix{}, netip.Addr{}, fmt.Errorf("address %q is not of VPC %q", args["ip"], args["vpc"])
	}
	return netip.PrefixFrom(ip, gateway.Bits()), gateway.Addr(), nil
}

// parse parses what the provider writes: key=value, separated by semicolons.
func parse(args string) map[string]string {
	parsed := map[string]string{}
	for arg := range strings.SplitSeq(args, ";") {
		key, value, _ := strings.Cut(arg, "=")
		parsed[key] = value
	}
	return parsed
}
