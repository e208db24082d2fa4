package network

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// Pod is a pod on a network.
type Pod struct {
	// Network is the network, with only what is immutable in its spec.
	Network Network
	// Namespace and Name are those of the tenant's pod.
	Namespace, Name string
	// Copy is the pod in the super cluster, which has another UID than an earlier
	// one of the name.
	Copy types.NamespacedName
	UID  types.UID
	// NIC is what the tenant asks for. It is checked, but whether the network has
	// such a subnet or address is for the provider to decide.
	NIC NIC
}

// Attachment is what a provider has prepared for a pod.
type Attachment struct {
	// Ready reports whether the pod can be scheduled.
	Ready bool
	// Message tells the tenant what is being waited for while Ready is false.
	Message string
	// CNIArgs is for the CNI plugin, which reads it in the annotation
	// arktos.futurewei.com/cni-args of the pod in the super cluster.
	CNIArgs string
}

// NIC is what a pod asks of its network interface.
type NIC struct {
	// Name is the name of the interface in the pod, such as eth0.
	Name string `json:"name,omitempty"`
	// Subnet is the provider's name of a subnet, or a range in CIDR notation.
	Subnet string `json:"subnet,omitempty"`
	// IP is an address, of the subnet if that is a range.
	IP string `json:"ip,omitempty"`
}

// maxNIC is the maximum length of a NIC in JSON.
const maxNIC = 1024

var (
	validInterface = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9_.]{0,14}$`)
	validSubnet    = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$`)
)

// ParseNIC parses and checks the annotation arktos.futurewei.com/nic of a pod.
func ParseNIC(text string) (NIC, error) {
	nic := NIC{}
	if len(text) > maxNIC {
		return nic, fmt.Errorf("it must have at most %d characters", maxNIC)
	}
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&nic); err != nil || decoder.More() {
		return NIC{}, errors.New(`it must be one JSON object with name, subnet and ip, such as {"name": "eth0", "ip": "192.0.2.5"}`)
	}
	if err := nic.check(); err != nil {
		return NIC{}, err
	}
	return nic, nil
}

// check returns what is wrong with a NIC.
func (n *NIC) check() error {
	if n.Name != "" && !validInterface.MatchString(n.Name) {
		return errors.New("name must be the name of an interface, such as eth0")
	}
	subnet, err := netip.ParsePrefix(n.Subnet)
	isRange := err == nil
	if n.Subnet != "" && !isRange && !validSubnet.MatchString(n.Subnet) {
		return errors.New("subnet must be a name, or a range in CIDR notation such as 192.0.2.0/24")
	}
	if n.IP == "" {
		return nil
	}
	ip, err := netip.ParseAddr(n.IP)
	if err != nil || ip.Zone() != "" {
		return errors.New("ip must be an address, such as 192.0.2.5")
	}
	if isRange && !subnet.Contains(ip) {
		return errors.New("ip must be an address of the subnet")
	}
	return nil
}
