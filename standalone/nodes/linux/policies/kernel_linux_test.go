package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
)

const (
	// gateway is the node's address on every link, and service the address of a
	// Service.
	gateway, service = "169.254.0.1", "10.96.0.1"
	// droppedAfter is how long an answer may take that should not come, and
	// answeredAfter one that should.
	droppedAfter, answeredAfter = 100 * time.Millisecond, 30 * time.Second
)

// machine is a node's network namespace with the pods of the test's cluster,
// each in a namespace of its own.
type machine struct {
	node netns.NsHandle
	pods map[string]netns.NsHandle // by the last byte of the address
}

// newMachine skips the test where namespaces or filters cannot be created.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{pods: map[string]netns.NsHandle{}}
	m.node = newNamespace(t)
	if err := in(m.node, func() error { return errors.Join(Check(), set("net/ipv4/ip_forward", "1")) }); err != nil {
		t.Skip(err)
	}
	for _, pod := range cluster.Pods {
		m.connect(t, pod.Address)
	}
	return m
}

func newNamespace(t *testing.T) netns.NsHandle {
	t.Helper()
	var namespace netns.NsHandle
	if err := in(netns.None(), func() (err error) { namespace, err = netns.New(); return err }); err != nil {
		t.Skip("create a network namespace:", err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace
}

// in calls f in a namespace, on a thread that ends with it.
func in(namespace netns.NsHandle, f func() error) error {
	result := make(chan error)
	go func() { // ends with f, and its thread with it, because that stays locked
		runtime.LockOSThread()
		var err error
		if namespace.IsOpen() {
			err = netns.Set(namespace)
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

func set(setting, value string) error { return os.WriteFile("/proc/sys/"+setting, []byte(value), 0) }

// connect adds a pod with an address, and routes between it and the node.
func (m *machine) connect(t *testing.T, address netip.Addr) {
	t.Helper()
	pod := newNamespace(t)
	name := fmt.Sprint(address.As4()[3])
	m.pods[name] = pod
	node, err := netlink.NewHandleAt(m.node)
	inside, failed := netlink.NewHandleAt(pod)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	defer inside.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.Namespace = "pod"+name, netlink.NsFd(m.node)
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(pod)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	host := func(ip string) *net.IPNet { return &net.IPNet{IP: net.ParseIP(ip).To4(), Mask: net.CIDRMask(32, 32)} }
	for _, end := range []struct {
		at                 *netlink.Handle
		link, own, towards string
		more               *netlink.Route
	}{
		{node, attributes.Name, gateway, address.String(), nil},
		{inside, "eth0", address.String(), gateway, &netlink.Route{Gw: net.ParseIP(gateway)}},
	} {
		link, err := end.at.LinkByName(end.link)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(
			end.at.AddrAdd(link, &netlink.Addr{IPNet: host(end.own)}), end.at.LinkSetUp(link),
			end.at.RouteAdd(&netlink.Route{Dst: host(end.towards), LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK}),
		)
		if end.more != nil {
			err = errors.Join(err, end.at.RouteAdd(end.more))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Refusals of UDP are ICMP, which is limited to a few a second.
	if err := in(pod, func() error { return set("net/ipv4/icmp_ratelimit", "0") }); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) install(t *testing.T, policies ...*networkingv1.NetworkPolicy) {
	t.Helper()
	c := cluster
	c.Policies = policies
	filter, err := NewFilter(c)
	if err == nil {
		err = in(m.node, func() error { return install(filter, "") })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reaches reports whether an attempt, such as "1>2 TCP 80", reaches a pod: no
// port is open, and a pod that is reached says so.
func (m *machine) reaches(attempt string, patience time.Duration) error {
	var from, to, protocol, port string
	if _, err := fmt.Sscanf(strings.Replace(attempt, ">", " ", 1), "%s %s %s %s", &from, &to, &protocol, &port); err != nil {
		return err
	}
	if !strings.Contains(to, ".") {
		to = "10.0.0." + to
	}
	err := in(m.pods[from], func() error {
		conn, err := net.DialTimeout(strings.ToLower(protocol), net.JoinHostPort(to, port), patience)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("hello")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// check compares what passes the filter with what should.
func (m *machine) check(t *testing.T, open, closed []string) {
	t.Helper()
	var all sync.WaitGroup
	for _, attempt := range open {
		all.Go(func() {
			if err := m.reaches(attempt, answeredAfter); err != nil {
				t.Errorf("%s is closed: %v", attempt, err)
			}
		})
	}
	for _, attempt := range closed {
		all.Go(func() {
			if err := m.reaches(attempt, droppedAfter); err == nil {
				t.Errorf("%s is open", attempt)
			}
		})
	}
	all.Wait()
}

// TestKernel: packets pass as each shape of a policy says. Pods 1 and 2 are in
// the shop, of which the policies are, and 3 is in the till.
func TestKernel(t *testing.T) {
	m := newMachine(t)
	every, web := metav1.LabelSelector{}, *by("app", "web")
	both := inShop(web, []ingress{{From: []peer{{PodSelector: by("app", "cart")}}}}, egress{To: []peer{{NamespaceSelector: by("tier", "back")}}})
	both.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	udp := ports{{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(53))}}
	for name, c := range map[string]struct {
		policies     []*networkingv1.NetworkPolicy
		open, closed []string
	}{
		"none": {nil, []string{"1>2 TCP 80", "3>1 UDP 53"}, nil},
		"nothing comes in, everything goes out": {
			[]*networkingv1.NetworkPolicy{inShop(every, nil)},
			[]string{"1>3 TCP 80", "2>3 UDP 53"},
			[]string{"1>2 TCP 80", "3>1 TCP 80", "3>2 UDP 53"},
		},
		"nothing goes out, everything comes in": {
			[]*networkingv1.NetworkPolicy{inShop(web, nil, egress{To: []peer{block("192.0.2.0/24")}})},
			[]string{"2>1 TCP 80", "3>1 TCP 80", "2>3 TCP 80"},
			[]string{"1>2 TCP 80", "1>3 UDP 53"},
		},
		"both ends must allow it": {
			[]*networkingv1.NetworkPolicy{both},
			[]string{"2>1 TCP 80", "1>3 TCP 80", "3>2 TCP 80"},
			[]string{"3>1 TCP 80", "1>2 TCP 80"},
		},
		"a port of a protocol": {
			[]*networkingv1.NetworkPolicy{inShop(every, []ingress{{Ports: append(port(80), udp...)}})},
			[]string{"3>1 TCP 80", "1>2 UDP 53"},
			[]string{"3>1 TCP 79", "3>1 TCP 81", "3>1 UDP 80", "1>2 TCP 53"},
		},
		"a range of ports": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{Ports: ports{{Port: new(intstr.FromInt32(80)), EndPort: new(int32(90))}}}})},
			[]string{"3>1 TCP 80", "3>1 TCP 85", "3>1 TCP 90"},
			[]string{"3>1 TCP 79", "3>1 TCP 91"},
		},
		"any port of a protocol": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{Ports: ports{{Protocol: new(corev1.ProtocolUDP)}}}})},
			[]string{"3>1 UDP 1", "3>1 UDP 65535"},
			[]string{"3>1 TCP 80"},
		},
		"a name is another port at each pod": {
			[]*networkingv1.NetworkPolicy{inShop(every, []ingress{{Ports: ports{{Port: new(intstr.FromString("http"))}}}})},
			[]string{"3>1 TCP 8080", "3>2 TCP 9090"},
			[]string{"3>1 TCP 9090", "3>2 TCP 8080"},
		},
		"an egress to a name": {
			[]*networkingv1.NetworkPolicy{inShop(web, nil, egress{Ports: ports{{Port: new(intstr.FromString("http"))}}})},
			[]string{"1>2 TCP 9090", "3>2 TCP 80"},
			[]string{"1>2 TCP 8080", "1>3 TCP 8080"},
		},
		"a block with a hole": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{block("0.0.0.0/0", "10.0.0.2/32")}}})},
			[]string{"3>1 TCP 80"},
			[]string{"2>1 TCP 80"},
		},
		"the last address of all": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{block("10.0.0.3/32"), block("255.255.255.255/32")}}})},
			[]string{"3>1 TCP 80"},
			[]string{"2>1 TCP 80"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m.install(t, c.policies...)
			m.check(t, c.open, c.closed)
		})
	}
}

// TestKernelKeepsConnections: a filter that forbids new connections leaves those
// that exist, and one with more addresses than fit into a message is installed
// as a whole.
func TestKernelKeepsConnections(t *testing.T) {
	m := newMachine(t)
	m.install(t) // the kernel tracks connections from the first filter on
	var listener net.Listener
	err := in(m.pods["1"], func() (err error) { listener, err = net.Listen("tcp", "10.0.0.1:80"); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	var conn net.Conn
	err = in(m.pods["2"], func() (err error) { conn, err = net.Dial("tcp", "10.0.0.1:80"); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var many []peer
	for i := range 3 * chunk {
		many = append(many, block(netip.AddrFrom4([4]byte{192, 0, byte(i >> 7), byte(i << 1)}).String()+"/32"))
	}
	m.install(t, inShop(metav1.LabelSelector{}, []ingress{{From: append(many, block("10.0.0.3/32"))}}))
	m.check(t, []string{"3>1 TCP 81"}, []string{"2>1 TCP 80", "2>1 TCP 81"})
	answer := make([]byte, 5)
	err = errors.Join(conn.SetDeadline(time.Now().Add(answeredAfter)), write(conn, "still"))
	if _, failed := io.ReadFull(conn, answer); err != nil || failed != nil || string(answer) != "still" {
		t.Errorf("the connection answers %q (%v, %v)", answer, err, failed)
	}
}

func write(to io.Writer, text string) error {
	_, err := io.WriteString(to, text)
	return err
}

// TestKernelLetsPodsReachThemselves: no policy keeps a pod from itself, which it
// reaches by a Service as kube-proxy implements it.
func TestKernelLetsPodsReachThemselves(t *testing.T) {
	m := newMachine(t)
	const proxy = `table ip proxy {
		chain services { type nat hook prerouting priority dstnat; ip daddr ` + service + ` dnat to 10.0.0.1; }
		chain hairpins { type nat hook postrouting priority srcnat; ip saddr 10.0.0.1 ip daddr 10.0.0.1 masquerade; }
	}`
	err := in(m.node, func() error {
		nft := exec.CommandContext(t.Context(), "nft", "-f", "-")
		nft.Stdin = strings.NewReader(proxy)
		return nft.Run()
	})
	if err != nil {
		t.Skip("install kube-proxy's part:", err)
	}
	m.install(t, inShop(metav1.LabelSelector{}, nil), inShop(metav1.LabelSelector{}, nil, egress{To: []peer{block("192.0.2.0/24")}}))
	m.check(t, []string{"1>" + service + " TCP 80"}, []string{"2>" + service + " TCP 80", "3>" + service + " TCP 80", "1>2 TCP 80"})
}

// TestInstallElsewhere: a filter can be that of another network namespace.
func TestInstallElsewhere(t *testing.T) {
	m := newMachine(t)
	c := cluster
	c.Policies = []*networkingv1.NetworkPolicy{inShop(metav1.LabelSelector{}, nil)}
	filter, err := NewFilter(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := install(filter, fmt.Sprint("/proc/self/fd/", int(m.node))); err != nil {
		t.Fatal(err)
	}
	m.check(t, []string{"1>3 TCP 80"}, []string{"2>1 TCP 80"})
	if err := install(filter, "/none"); err == nil || !strings.Contains(err.Error(), "open the network namespace: open /none") {
		t.Errorf("got %v, want that the namespace does not exist", err)
	}
}

// TestInstallWithoutRights: a filter that the kernel does not take is an error.
func TestInstallWithoutRights(t *testing.T) {
	namespace := newNamespace(t)
	err := in(namespace, func() error {
		if err := dropNetAdmin(); err != nil {
			return err
		}
		return install(Filter{}, "")
	})
	if err == nil || !strings.Contains(err.Error(), "install the packet filter") {
		t.Errorf("got %v, want that the filter could not be installed", err)
	}
}

// dropNetAdmin drops the thread's right to change its network.
func dropNetAdmin() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	return unix.Capset(&header, &data[0])
}

// TestEnforce: changes are installed until the context ends, and an object that
// no apiserver accepts ends enforcing, which leaves the filter as it was.
func TestEnforce(t *testing.T) {
	m := newMachine(t)
	policies := indexer()
	e := enforcing(t, podAt("web", "10.0.0.1"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	e.policies = networkinglisters.NewNetworkPolicyLister(policies)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- in(m.node, func() error { return e.enforce(ctx, logr.Discard()) }) }() // ends with ctx
	if err := policies.Add(inShop(metav1.LabelSelector{}, nil)); err != nil {
		t.Fatal(err)
	}
	e.changed()
	NewWithT(t).Eventually(m.reaches, answeredAfter).WithArguments("2>1 TCP 80", droppedAfter).ShouldNot(Succeed())
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("told to stop, it failed: %v", err)
	}
	wrong := inShop(metav1.LabelSelector{}, []ingress{{From: []peer{block("everywhere")}}})
	wrong.Name = "wrong"
	if err := policies.Add(wrong); err != nil {
		t.Fatal(err)
	}
	err := in(m.node, func() error { return e.enforce(t.Context(), logr.Discard()) })
	if err == nil || !strings.Contains(err.Error(), "everywhere") {
		t.Errorf("got %v, want what is wrong with the policy", err)
	}
	m.check(t, nil, []string{"2>1 TCP 80"})
}
