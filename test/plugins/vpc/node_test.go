package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
	"github.com/virtualcluster/virtualcluster/test/localtest"
)

const (
	// realNode is the environment variable with which tests run that need a
	// node with containers: make e2e sets it.
	realNode = "VC_REAL_NODE"
	agnhost  = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
)

// TestPodsOnARealNode: pods have the addresses that the provider has chosen, at
// which others reach them, and pods of a flat network those of the node.
func TestPodsOnARealNode(t *testing.T) {
	if os.Getenv(realNode) == "" {
		t.Skipf("set %s; make e2e does", realNode)
	}
	super, folder := localtest.Start(t, "--syncer=false", "--nodes=real", "--networks"), t.TempDir()
	installPlugin(t, filepath.Join(super.Dir, "node", "var", "lib", "cni"))
	startSyncer(t, super, folder)
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	tenant, err := super.NewTenant(t.Context(), vc)
	if err != nil {
		t.Fatal(err)
	}
	addVPC(t, folder, tenant.Key(), "vpc-1")
	n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "private"}, Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: "vpc-1"}}
	eventually(t, "the network is created", func(ctx context.Context) error { return tenant.Client.Create(ctx, n) })

	server := runs("server", n.Name, "netexec", "--http-port=8080")
	server.Annotations = map[string]string{networkv1.NICAnnotation: `{"ip": "192.168.0.12"}`}
	client := runs("client", n.Name, "connect", "--timeout=2s", "192.168.0.12:8080")
	flat := runs("flat", "default", "pause")
	for _, p := range []*corev1.Pod{server, client, flat} {
		eventually(t, "pod "+p.Name+" is created", func(ctx context.Context) error { return tenant.Client.Create(ctx, p) })
	}
	expectAddress(t, tenant, server, "192.168.0.12", corev1.PodRunning)
	expectAddress(t, tenant, client, "192.168.0.1", corev1.PodSucceeded)
	expectAddress(t, tenant, flat, "10.244.*", corev1.PodRunning)
}

// runs returns a pod on a network that runs a command of agnhost until it
// succeeds.
func runs(name, network string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{networkv1.Label: network}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{Name: "main", Image: agnhost, Args: args}},
		},
	}
}

// expectAddress waits until the tenant sees a pod's address, which matches a
// pattern, and its phase.
func expectAddress(t *testing.T, tenant *local.Tenant, p *corev1.Pod, pattern string, phase corev1.PodPhase) {
	t.Helper()
	eventually(t, "pod "+p.Name+" runs", func(ctx context.Context) error {
		err := tenant.Client.Get(ctx, client.ObjectKeyFromObject(p), p)
		if err == nil && (p.Status.PodIP == "" || p.Status.Phase != phase) {
			err = fmt.Errorf("it has the address %q and is %s", p.Status.PodIP, p.Status.Phase)
		}
		return err
	})
	if matches, err := filepath.Match(pattern, p.Status.PodIP); err != nil || !matches {
		t.Errorf("pod %s has the address %s; want %s", p.Name, p.Status.PodIP, pattern)
	}
}

// installPlugin connects the pods of a node by the plugin in the folder cni, as
// a network's agent would do on its nodes.
func installPlugin(t *testing.T, dir string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin", "vpc-cni"), "./cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	confs := filepath.Join(dir, "net.d")
	data, err := os.ReadFile(filepath.Join(confs, "bridge.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = withVPCs(data); err != nil {
		t.Fatal(err)
	}
	// containerd uses the first by name, as soon as it exists.
	next := filepath.Join(confs, "vpc.next")
	if err := errors.Join(os.WriteFile(next, data, 0o600), os.Rename(next, filepath.Join(confs, "00-vpc.conflist"))); err != nil {
		t.Fatal(err)
	}
}

// withVPCs returns the configuration of the node's bridge with the plugin, and
// with a VPC that the node is connected to.
func withVPCs(bridge []byte) ([]byte, error) {
	conf := map[string]any{}
	if err := json.Unmarshal(bridge, &conf); err != nil {
		return nil, fmt.Errorf("parse the configuration of the bridge: %w", err)
	}
	first := conf["plugins"].([]any)[0].(map[string]any)
	first["type"], first["vpcs"] = "vpc-cni", map[string]string{"vpc-1": "192.168.0.254/24"}
	first["capabilities"] = map[string]bool{"io.kubernetes.cri.pod-annotations": true}
	return json.Marshal(conf)
}
