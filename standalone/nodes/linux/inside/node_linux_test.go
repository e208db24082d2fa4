package inside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2/textlogger"
)

const patience = time.Minute

// TestMain is process 1 of a node and its containerd, too, by the name under
// which it is started.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "node":
		log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
		if err := Main(context.Background(), os.Stdin, log); err != nil {
			log.Error(err, "the node cannot run")
			os.Exit(1)
		}
	case "containerd":
		containerd()
	default:
		os.Exit(m.Run())
	}
}

// containerd listens where the node expects it, until it is stopped.
func containerd() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if err := os.MkdirAll(filepath.Dir(runtimeSocket), 0o700); err != nil {
		panic(err)
	}
	if _, err := net.Listen("unix", runtimeSocket); err != nil {
		panic(err)
	}
	<-stop
}

// testNode is a node in namespaces of its own. Its programs are scripts, except
// containerd.
type testNode struct {
	settings Settings
	command  *exec.Cmd
	input    io.WriteCloser
	said     bytes.Buffer // complete when ended is closed
	ended    chan struct{}
}

// waits is a program that runs until it is stopped.
const waits = "trap 'echo stopped; exit 0' TERM\necho started as \"$@\"\nwhile :; do sleep 0.02; done\n"

// newNode prepares a node, and skips the test where it cannot have namespaces.
func newNode(t *testing.T, scripts map[string]string) *testNode {
	t.Helper()
	n := &testNode{ended: make(chan struct{}), settings: Settings{
		Name: "vc-test-node", Programs: t.TempDir(), State: t.TempDir(), Images: t.TempDir(), Nameservers: []string{"192.0.2.53"},
		Address: net.IPv4(198, 19, 0, 2), PodNetwork: "10.244.0.0/24", ClusterDNS: net.IPv4(10, 96, 0, 10), ClusterDomain: "cluster.local",
	}}
	programs := map[string]string{"ctr": "echo \"$@\"\n", "kubelet": waits, "kube-proxy": waits, "node-policies": waits}
	maps.Copy(programs, scripts)
	for name, script := range programs {
		write(t, filepath.Join(n.settings.Programs, name), "#!/bin/sh\n"+script)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, replaced := programs["containerd"]; !replaced {
		if err := os.Symlink(self, filepath.Join(n.settings.Programs, "containerd")); err != nil {
			t.Fatal(err)
		}
	}
	n.command = exec.CommandContext(t.Context(), self)
	n.command.Args = []string{"node"}
	n.command.Stderr = &n.said
	n.command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
	}
	if n.input, err = n.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// start starts the node with its settings.
func (n *testNode) start(t *testing.T) {
	t.Helper()
	if err := n.command.Start(); errors.Is(err, fs.ErrPermission) {
		t.Skip("create namespaces:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = n.command.Wait() // the exit code is in the state of the process
		close(n.ended)
	}()
	t.Cleanup(func() { n.stop(t) })
	if err := json.NewEncoder(n.input).Encode(n.settings); err != nil {
		t.Fatal(err)
	}
}

// stop ends the node as a parent does that ends itself, and returns what it
// said.
func (n *testNode) stop(t *testing.T) string {
	t.Helper()
	_ = n.input.Close() // closed already at the second time
	return n.await(t)
}

// await waits for the end of the node and returns what it said.
func (n *testNode) await(t *testing.T) string {
	t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		t.Fatal("the node does not end")
	}
	return n.said.String()
}

// log is what a program of the node has said so far.
func (n *testNode) log(program string) func() string {
	return func() string {
		text, err := os.ReadFile(filepath.Join(n.settings.State, "log", program+".log"))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
}

// TestNode: the programs are started as they need each other, and again when
// they end; nothing of the machine changes, and all ends with the input.
func TestNode(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{
		"kubelet": `hostname
echo 4711 > /proc/sys/kernel/panic && cat /proc/sys/kernel/panic
cat /run/vc-node/resolv.conf
cat /proc/sys/net/ipv4/ip_forward
[ -e /var/tmp/crashed ] || { touch /var/tmp/crashed; echo crashed; exit 3; }
` + waits,
		// Processes that lose their parent are left to process 1.
		"kube-proxy": "orphan=$(sh -c 'true & echo $!')\nwhile [ -e /proc/$orphan ]; do sleep 0.02; done\necho reaped\n" + waits,
	})
	write(t, filepath.Join(n.settings.Images, "more.tar"), "")
	if err := os.Mkdir(filepath.Join(n.settings.Programs, "images"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(n.settings.Programs, "images", "own.tar"), "")
	before := machine(t)
	n.start(t)

	g.Eventually(n.log("kubelet"), patience).Should(MatchRegexp(
		`^vc-test-node\n4711\nnameserver 192.0.2.53\n+1\ncrashed\nvc-test-node\n(.*\n)*started as .* --hostname-override vc-test-node --node-ip 198.19.0.2\n$`))
	g.Eventually(n.log("kube-proxy"), patience).Should(ContainSubstring("reaped\nstarted as --config /run/vc-node/kube-proxy.yaml\n"))
	g.Eventually(n.log("node-policies"), patience).Should(ContainSubstring("--runtime unix:///run/containerd/containerd.sock\n"))
	g.Expect(n.log("ctr")()).To(MatchRegexp(`import /run/vc-node/bin/images/own\.tar\n.* import /run/vc-node/images/more\.tar\n$`))
	said := n.stop(t)
	g.Expect(n.command.ProcessState.ExitCode()).To(BeZero(), said)
	g.Expect(said).To(MatchRegexp(`restarting it" program="kubelet" reason="exit code 3"`))
	for _, program := range []string{"kubelet", "kube-proxy", "node-policies"} {
		g.Expect(n.log(program)()).To(HaveSuffix("stopped\n"), program)
	}
	g.Expect(machine(t)).To(Equal(before))
}

// TestNodeStartsAgain: a node that is started with the state of another has
// that state, and logs continue.
func TestNodeStartsAgain(t *testing.T) {
	g := NewWithT(t)
	first := newNode(t, nil)
	second := newNode(t, map[string]string{"kubelet": "cat /var/lib/kept /var/run/vc-node/resolv.conf\n" + waits})
	second.settings.State = first.settings.State
	for i, n := range []*testNode{first, second} {
		n.start(t)
		for _, program := range []string{"kube-proxy", "kubelet"} { // its log has the earlier starts, too
			g.Eventually(func() int { return strings.Count(n.log(program)(), "started as") }, patience).Should(Equal(i+1), program)
		}
		write(t, filepath.Join(first.settings.State, "lib", "kept"), "what the first one kept\n")
		said := n.stop(t)
		g.Expect(n.command.ProcessState.ExitCode()).To(BeZero(), said)
	}
	g.Expect(second.log("kubelet")()).To(And(ContainSubstring("what the first one kept"), ContainSubstring("nameserver 192.0.2.53")))
	g.Expect(strings.Count(second.log("kube-proxy")(), "stopped\n")).To(Equal(2))
}

// machine is what a node must not change of the machine that it runs on.
func machine(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range []string{"/proc/sys/kernel/hostname", "/proc/sys/kernel/panic", "/proc/self/mountinfo", "/proc/sys/net/ipv4/ip_forward"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(text)
	}
	return found
}

// TestNodeThatCannotStart tests that it exits with the reason, and stops
// everything that was started.
func TestNodeThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		scripts map[string]string
		change  func(*testing.T, *testNode)
		want    string
	}{
		"a broken image": {
			map[string]string{"ctr": "echo no image; exit 1\n"},
			func(t *testing.T, n *testNode) { write(t, filepath.Join(n.settings.Images, "broken.tar"), "") },
			"import broken.tar: exit code 1; see /var/log/ctr.log",
		},
		"no ctr": {
			nil,
			func(t *testing.T, n *testNode) {
				write(t, filepath.Join(n.settings.Images, "more.tar"), "")
				if err := os.Remove(filepath.Join(n.settings.Programs, "ctr")); err != nil {
					t.Fatal(err)
				}
			},
			"import more.tar: start /run/vc-node/bin/ctr",
		},
		"no programs": {
			nil, func(_ *testing.T, n *testNode) { n.settings.Programs = "/no/programs" }, "open /no/programs: no such file",
		},
		"a name that is too long": {
			nil, func(_ *testing.T, n *testNode) { n.settings.Name = strings.Repeat("a", 65) }, "set the node's name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, c.scripts)
			c.change(t, n)
			n.start(t)
			if said := n.await(t); n.command.ProcessState.ExitCode() != 1 || !strings.Contains(said, c.want) {
				t.Errorf("it ended with code %d and said %s\nwant %q", n.command.ProcessState.ExitCode(), said, c.want)
			}
		})
	}
}

// TestNodeStopsWhileStarting: a containerd that never listens does not keep the
// node from ending, and is started again until then.
func TestNodeStopsWhileStarting(t *testing.T) {
	n := newNode(t, map[string]string{"containerd": "echo broken\nexit 7\n"})
	n.start(t)
	NewWithT(t).Eventually(n.log("containerd"), patience).Should(HavePrefix(strings.Repeat("broken\n", 2)))
	if said := n.stop(t); !strings.Contains(said, `program="containerd" reason="exit code 7"`) {
		t.Errorf("it said %s", said)
	}
	if text := n.log("kubelet")(); !strings.Contains(text, "no such file") {
		t.Errorf("the kubelet was started before containerd: %s", text)
	}
}

// TestSettingsThatAreNone: nothing is touched before the settings are known.
func TestSettingsThatAreNone(t *testing.T) {
	for name, input := range map[string]string{
		"nothing": "", "half of them": `{"name": "worker"`, "others": `{"name": 7}`, "no address": `{"address": "here"}`, "no JSON": "worker\n",
	} {
		t.Run(name, func(t *testing.T) {
			log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
			err := Main(t.Context(), strings.NewReader(input), log)
			if err == nil || !strings.HasPrefix(err.Error(), "read the node's settings: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}
