package quota

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// amounts parses quantities.
func amounts(texts map[string]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range texts {
		list[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return list
}

func texts(list corev1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}

func container(requests, limits map[string]string) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts(requests), Limits: amounts(limits)}}
}

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

// declared returns kinds as the syncer describes them: of ConfigMaps and
// Secrets it caches metadata.
func declared() []plugins.Kind {
	core := corev1.SchemeGroupVersion
	return []plugins.Kind{
		plugintest.KindOf(core.WithKind("Pod"), &corev1.Pod{}),
		plugintest.KindOf(core.WithKind("PersistentVolumeClaim"), &corev1.PersistentVolumeClaim{}),
		plugintest.KindOf(core.WithKind("Service"), &corev1.Service{}),
		plugintest.KindOf(core.WithKind("ConfigMap"), &metav1.PartialObjectMetadata{}),
		plugintest.KindOf(core.WithKind("Secret"), &metav1.PartialObjectMetadata{}),
		plugintest.KindOf(core.WithKind("Namespace"), &corev1.Namespace{}),
	}
}

func usageIn(t *testing.T, count corev1.ResourceName, obj client.Object) map[string]string {
	t.Helper()
	for _, k := range declared() {
		if counted := countedKind(k); counted.count == count {
			return texts(counted.usageOf(obj, now))
		}
	}
	t.Fatalf("%s is not counted", count)
	return nil
}

func cpu(amount string) map[string]string { return map[string]string{"cpu": amount} }

func TestPodUsage(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cpuOf := func(amount string) map[string]string {
		return map[string]string{"count/pods": "1", "pods": "1", "cpu": amount, "requests.cpu": amount}
	}
	ended := map[string]string{"count/pods": "1"}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		change func(*corev1.Pod)
		want   map[string]string
	}{
		"no resources":   {podOf(corev1.Container{}), nil, map[string]string{"count/pods": "1", "pods": "1"}},
		"two containers": {podOf(container(cpu("1"), nil), container(cpu("500m"), nil)), nil, cpuOf("1500m")},
		"limits": {podOf(container(nil, map[string]string{"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"})), nil,
			map[string]string{"count/pods": "1", "pods": "1", "limits.cpu": "2", "limits.memory": "1Gi"}},
		"extended resources": {podOf(container(map[string]string{"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}, nil)), nil,
			map[string]string{
				"count/pods": "1", "pods": "1", "requests.nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
				"ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi",
			}},
		"an init container that is larger": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container(cpu("3"), nil)}
		}, cpuOf("3")},
		"an init container that is smaller": {podOf(container(cpu("2"), nil)), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container(cpu("1"), nil)}
		}, cpuOf("2")},
		"a sidecar": {podOf(container(cpu("2"), nil)), func(p *corev1.Pod) {
			sidecar := container(cpu("1"), nil)
			sidecar.RestartPolicy = &always
			p.Spec.InitContainers = []corev1.Container{sidecar}
		}, cpuOf("3")},
		"overhead": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) { p.Spec.Overhead = amounts(cpu("250m")) }, cpuOf("1250m")},
		"resize in progress": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "c", AllocatedResources: amounts(cpu("3")), Resources: &corev1.ResourceRequirements{Requests: amounts(cpu("3"))},
			}}
		}, cpuOf("3")},
		"ended":  {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, ended},
		"failed": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ended},
		"being deleted": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-time.Second)}, new(int64(30))
		}, cpuOf("1")},
		"past its grace period": {podOf(container(cpu("1"), nil)), func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-time.Minute)}, new(int64(30))
		}, ended},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.pod)
			}
			if diff := cmp.Diff(tc.want, usageIn(t, "count/pods", tc.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClaimUsage(t *testing.T) {
	claim := func(class, asks, promised string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Spec.Resources.Requests = amounts(map[string]string{"storage": asks})
		if class != "" {
			c.Spec.StorageClassName = &class
		}
		if promised != "" {
			c.Status.AllocatedResources = amounts(map[string]string{"storage": promised})
		}
		return c
	}
	const fast = "fast.storageclass.storage.k8s.io/"
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		size  string
		class bool
	}{
		"of no class":      {claim("", "1Gi", ""), "1Gi", false},
		"of a class":       {claim("fast", "1Gi", ""), "1Gi", true},
		"being expanded":   {claim("fast", "2Gi", "1Gi"), "2Gi", true},
		"expansion failed": {claim("fast", "1Gi", "2Gi"), "2Gi", true},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": tc.size}
			if tc.class {
				want[fast+"requests.storage"], want[fast+"persistentvolumeclaims"] = tc.size, "1"
			}
			if diff := cmp.Diff(want, usageIn(t, "count/persistentvolumeclaims", tc.claim)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServiceUsage(t *testing.T) {
	service := func(kind corev1.ServiceType, change ...func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}, {Port: 443}}}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	noPorts := func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(false) }
	for name, tc := range map[string]struct {
		service          *corev1.Service
		ports, balancers string
	}{
		"inside":                       {service(corev1.ServiceTypeClusterIP), "", ""},
		"on nodes":                     {service(corev1.ServiceTypeNodePort), "2", ""},
		"balanced":                     {service(corev1.ServiceTypeLoadBalancer), "2", "1"},
		"balanced, on ports it names":  {service(corev1.ServiceTypeLoadBalancer, noPorts), "1", "1"},
		"elsewhere":                    {service(corev1.ServiceTypeExternalName), "", ""},
		"node ports, always allocated": {service(corev1.ServiceTypeNodePort, noPorts), "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"count/services": "1", "services": "1"}
			if tc.ports != "" {
				want["services.nodeports"] = tc.ports
			}
			if tc.balancers != "" {
				want["services.loadbalancers"] = tc.balancers
			}
			if diff := cmp.Diff(want, usageIn(t, "count/services", tc.service)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUsageOfOthers(t *testing.T) {
	if diff := cmp.Diff(map[string]string{"count/configmaps": "1", "configmaps": "1"}, usageIn(t, "count/configmaps", &corev1.ConfigMap{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"count/namespaces": "1"}, usageIn(t, "count/namespaces", &corev1.Namespace{})); diff != "" {
		t.Error(diff)
	}
}
