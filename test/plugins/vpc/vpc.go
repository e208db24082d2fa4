package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// registration returns the registration of the provider.
func registration(folder string) network.Registration {
	return network.Registration{Type: "vpc", New: func(network.Environment) (network.Provider, error) {
		if folder == "" {
			return nil, errors.New("the folder of the VPCs is not set")
		}
		return &provider{folder: folder}, nil
	}}
}

// provider gives pods addresses of VPCs, which are files in a folder. An admin
// creates a VPC as TENANT/ID.json with its range: {"cidr": "192.168.0.0/24"}. So
// a tenant has no VPC of another one, whatever it writes into spec.vpcID.
type provider struct {
	folder string
	mu     sync.Mutex
}

// vpc is the content of a file.
type vpc struct {
	CIDR netip.Prefix `json:"cidr"`
	// Used has the networks that use the VPC, by name.
	Used map[string]bool `json:"used,omitempty"`
	// Pods are the addresses by the UID of the pod.
	Pods map[string]netip.Addr `json:"pods,omitempty"`
}

// path returns the file of a network's VPC.
func (p *provider) path(n network.Network) string {
	return filepath.Join(p.folder, n.Tenant.Key, filepath.Base(n.Spec.VPCID)+".json")
}

// change changes a VPC, in one step.
func (p *provider) change(n network.Network, f func(*vpc) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := os.ReadFile(p.path(n))
	v := &vpc{}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err == nil {
		err = f(v)
	}
	if err != nil {
		return err
	}
	if data, err = json.Marshal(v); err != nil {
		return err
	}
	next := p.path(n) + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, p.path(n))
}

// Ensure implements network.Provider. The reason of a failure is for the tenant.
func (p *provider) Ensure(_ context.Context, n network.Network) (network.State, error) {
	err := p.change(n, func(v *vpc) error {
		if v.Used == nil {
			v.Used = map[string]bool{}
		}
		v.Used[n.Name] = true
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return network.State{}, &plugins.RejectionError{Reason: "VPCNotFound", Message: "VPC " + n.Spec.VPCID + " does not exist"}
	}
	return network.State{Ready: err == nil}, err
}

// Delete implements network.Provider. The VPC stays, since an admin made it.
func (p *provider) Delete(_ context.Context, n network.Network) (bool, error) {
	err := p.change(n, func(v *vpc) error { delete(v.Used, n.Name); return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil, err
}

// PreparePod implements network.Provider: it allocates an address.
func (p *provider) PreparePod(_ context.Context, pod network.Pod) (network.Attachment, error) {
	attachment := network.Attachment{Ready: true}
	err := p.change(pod.Network, func(v *vpc) error {
		ip, err := v.allocate(pod)
		attachment.CNIArgs = fmt.Sprintf("vpc=%s;ip=%s", pod.Network.Spec.VPCID, ip)
		return err
	})
	if err != nil {
		return network.Attachment{}, err
	}
	return attachment, nil
}

// allocate returns the address of a pod: the one that it has, the one that it
// asks for, or a free one.
func (v *vpc) allocate(pod network.Pod) (netip.Addr, error) {
	if ip, has := v.Pods[string(pod.UID)]; has {
		return ip, nil
	}
	taken := map[netip.Addr]bool{}
	for _, ip := range v.Pods {
		taken[ip] = true
	}
	ip := v.CIDR.Addr().Next()
	if pod.NIC.IP != "" {
		ip = netip.MustParseAddr(pod.NIC.IP) // the syncer has checked it
		if !v.CIDR.Contains(ip) || taken[ip] {
			return ip, &plugins.RejectionError{Reason: "AddressUnavailable", Message: "address " + pod.NIC.IP + " is taken, or not of the VPC"}
		}
	}
	for taken[ip] {
		ip = ip.Next()
	}
	if !v.CIDR.Contains(ip) {
		return ip, &plugins.RejectionError{Reason: "NoAddress", Message: "the VPC has no free address"}
	}
	if v.Pods == nil {
		v.Pods = map[string]netip.Addr{}
	}
	v.Pods[string(pod.UID)] = ip
	return ip, nil
}

// ReleasePod implements network.Provider.
func (p *provider) ReleasePod(_ context.Context, pod network.Pod) (bool, error) {
	err := p.change(pod.Network, func(v *vpc) error { delete(v.Pods, string(pod.UID)); return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil, err
}
