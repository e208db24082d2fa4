package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/plugins/network/networktest"
	"github.com/virtualcluster/virtualcluster/test/local"
	"github.com/virtualcluster/virtualcluster/test/localtest"
)

// addVPC does what an admin does: it creates a VPC of a tenant.
func addVPC(t *testing.T, folder, tenant, id string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, tenant), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, tenant, id+".json"), []byte(`{"cidr": "192.168.0.0/24"}`), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	folder, serial := t.TempDir(), 0
	next := func() network.Network {
		serial++
		name := fmt.Sprintf("net-%d", serial)
		return network.Network{
			Tenant: plugins.Tenant{Key: "red"}, Name: name, UID: types.UID(name), Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: "vpc-" + name},
		}
	}
	networktest.Run(t, networktest.Case{
		New: func(context.Context) (network.Provider, error) {
			return registration(folder).New(network.Environment{})
		},
		Network: func() network.Network {
			n := next()
			addVPC(t, folder, n.Tenant.Key, n.Spec.VPCID)
			return n
		},
		Invalid: next,
	})
}

// TestAddresses: a pod has the address that it asks for, or a free one.
func TestAddresses(t *testing.T) {
	folder := t.TempDir()
	addVPC(t, folder, "red", "vpc-1")
	p := &provider{folder: folder}
	n := network.Network{Tenant: plugins.Tenant{Key: "red"}, Name: "net-1", Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: "vpc-1"}}
	for _, step := range []struct{ uid, ip, want string }{
		{"1", "", "vpc=vpc-1;ip=192.168.0.1"},
		{"2", "192.168.0.2", "vpc=vpc-1;ip=192.168.0.2"},
		{"3", "", "vpc=vpc-1;ip=192.168.0.3"},
		{"4", "192.168.0.3", "is taken"},
		{"5", "192.168.1.3", "not of the VPC"},
		{"2", "", "vpc=vpc-1;ip=192.168.0.2"},
	} {
		got, err := p.PreparePod(t.Context(), network.Pod{Network: n, UID: types.UID(step.uid), NIC: network.NIC{IP: step.ip}})
		if got.CNIArgs != step.want && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("pod %s gets %+v, %v; want %s", step.uid, got, err, step.want)
		}
	}
}

// TestNetworks: on a real super cluster, networks of the provider become ready or
// fail, and their pods start with what it has prepared.
func TestNetworks(t *testing.T) {
	super, folder := localtest.Start(t, "--syncer=false", "--agent=false", "--nodes=1"), t.TempDir()
	startSyncer(t, super, folder)
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	tenant, err := super.NewTenant(t.Context(), vc)
	if err != nil {
		t.Fatal(err)
	}
	addVPC(t, folder, tenant.Key(), "vpc-1")
	for name, id := range map[string]string{"good": "vpc-1", "bad": "vpc-2"} {
		n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: id}}
		eventually(t, "network "+name+" is created", func(ctx context.Context) error { return tenant.Client.Create(ctx, n) })
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{networkv1.Label: name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
		}
		eventually(t, "pod "+name+" is created", func(ctx context.Context) error { return tenant.Client.Create(ctx, pod) })
	}
	expectPhase(t, tenant, "good", networkv1.PhaseReady)
	expectPhase(t, tenant, "bad", networkv1.PhaseFailed)
	copied := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Super("default"), Name: "good"}}
	eventually(t, "the pod of the good network is prepared and scheduled", func(ctx context.Context) error {
		err := super.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied)
		if err == nil && (copied.Annotations[networkv1.CNIArgsAnnotation] != "vpc=vpc-1;ip=192.168.0.1" || copied.Spec.NodeName == "") {
			err = fmt.Errorf("it has the annotations %v and is on node %q", copied.Annotations, copied.Spec.NodeName)
		}
		return err
	})
	waiting := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Namespace, Name: "bad"}}
	if err := super.Client.Get(t.Context(), client.ObjectKeyFromObject(waiting), waiting); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the pod of the failed network has a copy: %v", err)
	}

	release(t, tenant, "good")
	data, err := os.ReadFile(filepath.Join(folder, tenant.Key(), "vpc-1.json"))
	if err != nil || string(data) != `{"cidr":"192.168.0.0/24"}` {
		t.Errorf("the VPC is left with %s, %v", data, err)
	}
}

// release deletes a pod and its network, and waits until both are gone.
func release(t *testing.T, tenant *local.Tenant, name string) {
	t.Helper()
	for _, obj := range []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		if err := tenant.Client.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("%T %s is gone", obj, name), func(ctx context.Context) error {
			if err := tenant.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return client.IgnoreNotFound(err)
			}
			return errors.New("it is there")
		})
	}
}

// expectPhase waits until a network is in a phase.
func expectPhase(t *testing.T, tenant *local.Tenant, name string, phase networkv1.Phase) {
	t.Helper()
	n := &networkv1.Network{}
	eventually(t, fmt.Sprintf("network %s is %s", name, phase), func(ctx context.Context) error {
		err := tenant.Client.Get(ctx, client.ObjectKey{Name: name}, n)
		if err == nil && n.Status.Phase != phase {
			err = fmt.Errorf("it is %+v", n.Status)
		}
		return err
	})
}

// eventually repeats a call until it succeeds.
func eventually(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err := call(ctx)
	for ; err != nil && ctx.Err() == nil; err = call(ctx) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// startSyncer runs the command, by the permissions of vc-syncer alone.
func startSyncer(t *testing.T, super *local.SuperCluster, folder string) {
	t.Helper()
	config, err := super.SyncerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	localtest.Run(t, newCommand(folder), config, "--metrics-bind-address=0", "--networks", "--patrol=3s")
}
