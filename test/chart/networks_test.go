package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNetworks: vc-syncer has the flags of networks if they are enabled, and finds
// the template of the default network, unchanged, where its flag says.
func TestNetworks(t *testing.T) {
	const (
		template = `{"metadata": {"name": "default"}, "spec": {"type": "vpc", "vpcID": "{{.}}-default"}}`
		flag     = "--default-network-template-path=/etc/vc-syncer/default-network.json"
	)
	for values, want := range map[string][]string{
		"internalCIDRs: [192.168.0.0/16], defaultTemplate: '" + template + "'": nil,
		"enabled: true": {"--networks"},
		"enabled: true, internalCIDRs: [192.168.0.0/16, \"fd00::/56\"]": {"--networks", "--internal-cidr=192.168.0.0/16,fd00::/56"},
		"enabled: true, defaultTemplate: '" + template + "'":            {"--networks", flag},
	} {
		objects := mustRender(t, "vcSyncer: {networks: {"+values+"}}")
		pod := workloads(t, objects)["vc-syncer"].template.Spec
		flags := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(arg string) bool {
			return !strings.HasPrefix(arg, "--networks") && !strings.HasPrefix(arg, "--internal-cidr") && !strings.HasPrefix(arg, "--default-network")
		})
		if !slices.Equal(flags, want) {
			t.Errorf("%s: the flags are %v, want %v", values, flags, want)
		}
		content := ""
		if slices.Contains(want, flag) {
			content = template
		}
		if got := configOf(t, objects, &pod)["default-network.json"]; got != content {
			t.Errorf("%s: the template is %q, want %q", values, got, content)
		}
	}
}

// TestAnotherTemplateIsRead: vc-syncer reads the template when it starts, so its
// pods are replaced when that changes.
func TestAnotherTemplateIsRead(t *testing.T) {
	names := map[string]bool{}
	for _, template := range []string{`{"a": 1}`, `{"a": 2}`} {
		pod := workloads(t, mustRender(t, "vcSyncer: {networks: {enabled: true, defaultTemplate: '"+template+"'}}"))["vc-syncer"].template.Spec
		names[pod.Volumes[0].ConfigMap.Name] = true
	}
	if len(names) != 2 {
		t.Errorf("two templates are in %v", names)
	}
}

// configOf returns what a pod finds in /etc/vc-syncer.
func configOf(t *testing.T, objects map[string]*unstructured.Unstructured, pod *corev1.PodSpec) map[string]string {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if mount.MountPath != "/etc/vc-syncer" || i < 0 {
			continue
		}
		config := typed[corev1.ConfigMap](t, objects, "ConfigMap")[pod.Volumes[i].ConfigMap.Name]
		if config == nil {
			t.Fatalf("there is no ConfigMap %s", pod.Volumes[i].ConfigMap.Name)
		}
		return config.Data
	}
	return nil
}

// TestSecondaryPool: a second range is part of the pool, and vc-manager and vc-host
// know it.
func TestSecondaryPool(t *testing.T) {
	const second = "fd00:104::/105"
	for values, want := range map[string]bool{"": false, `, secondaryPool: "` + second + `"`: true} {
		objects := mustRender(t, "serviceAddresses: {pool: 10.104.0.0/13"+values+"}")
		all := workloads(t, objects)
		for workload, flag := range map[string]string{"vc-manager": "--secondary-service-cidr-pool=", "vc-host": "--internal-cidr="} {
			if got := slices.Contains(all[workload].template.Spec.Containers[0].Args, flag+second); got != want {
				t.Errorf("%q: %s has %s%s: %v", values, workload, flag, second, got)
			}
		}
		for _, pool := range typed[networkingv1.ServiceCIDR](t, objects, "ServiceCIDR") {
			if got := slices.Contains(pool.Spec.CIDRs, second); got != want || pool.Spec.CIDRs[0] != "10.104.0.0/13" {
				t.Errorf("%q: the pool is %v", values, pool.Spec.CIDRs)
			}
		}
	}
}
