package simulated

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// PodNetwork is the CIDR of pods.
const PodNetwork = "10.128.0.0/9"

const (
	firstPod    = 10<<24 | 128<<16 // 10.128.0.0, which no pod gets
	podNetworkN = 1 << 23
)

// addresses assigns addresses to pods, one after the other. It starts above the
// highest one in use, so that addresses stay unique after a restart.
type addresses struct {
	last atomic.Uint32
}

// use records an address that a pod has already.
func (a *addresses) use(ip string) {
	address, err := netip.ParseAddr(ip)
	if err != nil || !address.Is4() {
		return
	}
	bytes := address.As4()
	if n := binary.BigEndian.Uint32(bytes[:]) - firstPod; n < podNetworkN && n > a.last.Load() {
		a.last.Store(n)
	}
}

// next returns an address that has not been assigned for millions of pods.
func (a *addresses) next() string {
	n := a.last.Add(1)%(podNetworkN-1) + 1 // never the first, which is the address of the network
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], firstPod+n)
	return netip.AddrFrom4(bytes).String()
}

// used returns an allocator that knows the addresses of the pods.
func used(pods []corev1.Pod) *addresses {
	a := &addresses{}
	for i := range pods {
		if !pods[i].Spec.HostNetwork {
			a.use(pods[i].Status.PodIP)
		}
	}
	return a
}
