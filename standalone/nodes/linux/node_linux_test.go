package linux

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/inside"
)

const patience = time.Minute

// TestMain is process 1 of a node, too, if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeArgument {
		processOne(os.Args[2])
	}
	os.Exit(m.Run())
}

const nodeArgument = "vc-test-node"

// processOne prints where it runs, and exits as requested.
func processOne(how string) {
	settings := &inside.Settings{}
	if err := json.NewDecoder(os.Stdin).Decode(settings); err != nil {
		panic(err)
	}
	_, err := net.InterfaceByName("eth0")
	fmt.Printf("%s is process %d, with a link: %t\n", settings.Name, os.Getpid(), err == nil)
	if code, err := strconv.Atoi(how); err == nil {
		os.Exit(code)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// apart calls f in a network namespace of its own, so that links of nodes on
// this machine have no part in it. It skips the test where that is not
// possible.
func apart(t *testing.T, f func()) {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() { // ends with f, and its thread with it, because that stays locked
		defer close(done)
		runtime.LockOSThread()
		namespace, failed := netns.New()
		if err = failed; err == nil {
			f()
			err = namespace.Close()
		}
	}()
	<-done
	if err != nil {
		t.Skip("create a network namespace:", err)
	}
}

// TestNetwork: every node of a machine has a network of its own, in which it
// can reach the machine, and which is gone without a trace when it is closed.
func TestNetwork(t *testing.T) {
	apart(t, func() {
		g := NewWithT(t)
		first, err := newNetwork()
		g.Expect(err).NotTo(HaveOccurred())
		second, err := newNetwork()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]string{first.name(), second.name()}).To(Equal([]string{"vc-node-0", "vc-node-1"}))
		g.Expect(links(t)).To(ContainElements("vc-node-0", "vc-node-1"))

		var out bytes.Buffer
		command := exec.CommandContext(t.Context(), "/proc/self/exe", nodeArgument, "0")
		command.Stdin, command.Stdout = strings.NewReader(`{"name": "worker"}`), &out
		g.Expect(second.start(command)).To(Succeed())
		g.Expect(command.Wait()).To(Succeed())
		g.Expect(out.String()).To(HaveSuffix("with a link: true\n"))

		g.Expect(first.close()).To(Succeed())
		again, err := newNetwork()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.name()).To(Equal("vc-node-0"), "a number that is free is taken again")
		g.Expect(errors.Join(again.close(), second.close())).To(Succeed())
		g.Expect(links(t)).NotTo(ContainElement(HavePrefix("vc-node-")))
		g.Expect(second.close()).NotTo(Succeed(), "it is closed already")
		g.Expect(second.start(exec.CommandContext(t.Context(), "true"))).NotTo(Succeed(), "its namespace is gone")
	})
}

// TestNetworkWithoutRoute: a failure half-way leaves no link behind.
func TestNetworkWithoutRoute(t *testing.T) {
	apart(t, func() {
		g := NewWithT(t)
		node := &net.IPNet{IP: (&network{}).nodeAddress(), Mask: net.CIDRMask(addressBits, addressBits)}
		g.Expect(netlink.RouteAdd(&netlink.Route{Dst: node, Type: unix.RTN_UNREACHABLE, Scope: netlink.SCOPE_LINK})).To(Succeed())
		_, err := newNetwork()
		g.Expect(err).To(MatchError(ContainSubstring("connect the node to this machine: set up link vc-node-0: ")))
		g.Expect(links(t)).NotTo(ContainElement(HavePrefix("vc-node-")))
	})
}

func links(t *testing.T) []string {
	t.Helper()
	all, err := netlink.LinkList()
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, link := range all {
		names = append(names, link.Attrs().Name)
	}
	return names
}

// bootable returns a node that runs this test's process 1, with a cgroup of its
// own. It skips the test where there can be none.
func bootable(t *testing.T, how string) (*Node, *inside.Settings, *bytes.Buffer) {
	t.Helper()
	pods := cgroup(fmt.Sprintf("vc-test-%d-%s", os.Getpid(), how))
	if err := pods.make(t.Context()); err != nil {
		t.Skip(err)
	}
	var out bytes.Buffer
	network, err := newNetwork()
	if err != nil {
		t.Skip(err)
	}
	n := &Node{network: network, opts: Options{Command: []string{nodeArgument, how}, Output: &out, Log: logr.Discard()}}
	return n, &inside.Settings{Name: "worker", Cgroup: string(pods)}, &out
}

// cgroupsOf are the directories of a node's cgroup that exist.
func cgroupsOf(t *testing.T, settings *inside.Settings) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cgroups, "*", settings.Cgroup))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cgroups, settings.Cgroup)); err == nil {
		found = append(found, settings.Cgroup)
	}
	return found
}

// TestNodeThatEnds: one that ends as soon as it is started is broken, and
// leaves no cgroup behind.
func TestNodeThatEnds(t *testing.T) {
	apart(t, func() {
		n, settings, out := bootable(t, "7")
		if err := n.keep(t.Context(), settings); err == nil || !strings.HasSuffix(err.Error(), ": exit status 7") {
			t.Errorf("got %v", err)
		}
		if want := "worker is process 1, with a link: true\n"; out.String() != want {
			t.Errorf("it said %q, want %q", out, want)
		}
		if left := cgroupsOf(t, settings); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		// The network is closed now.
		if err := n.boot(t.Context(), settings); err == nil || !strings.Contains(err.Error(), "start the node in namespaces of its own") {
			t.Errorf("got %v", err)
		}
		if left := cgroupsOf(t, settings); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// TestNodeThatIsStopped: it ends with its context, which is no error, and what
// a node left that was killed is no hindrance.
func TestNodeThatIsStopped(t *testing.T) {
	apart(t, func() {
		g := NewWithT(t)
		n, settings, out := bootable(t, "stays")
		for _, dir := range cgroupsOf(t, settings) {
			g.Expect(os.MkdirAll(filepath.Join(dir, "kubepods"), 0o755)).To(Succeed())
		}
		said := &watched{to: out, ready: make(chan struct{})}
		n.opts.Output = said
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		go func() { // ends when the node runs, or has no time left
			select {
			case <-said.ready:
			case <-ctx.Done():
			}
			cancel()
		}()
		g.Expect(n.keep(ctx, settings)).To(Succeed())
		g.Expect(context.Cause(ctx)).To(MatchError(context.Canceled), "it did not run: %s", out)
		g.Expect(cgroupsOf(t, settings)).To(BeEmpty())
		g.Expect(n.Close()).To(Succeed())
	})
}

// watched says when something is written.
type watched struct {
	to    io.Writer
	ready chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	select {
	case <-w.ready:
	default:
		close(w.ready)
	}
	return w.to.Write(p)
}
