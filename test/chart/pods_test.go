package chart

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// variants are values that the specs of pods depend on.
var variants = map[string]string{"defaults": "", "everything": everything, "leader election": elect, "cert-manager": certManager}

// workload is what Deployments and StatefulSets have in common.
type workload struct {
	replicas int32
	selector map[string]string
	template corev1.PodTemplateSpec
}

// workloads returns all that run pods, by name.
func workloads(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]workload {
	t.Helper()
	all := map[string]workload{}
	for name, d := range typed[appsv1.Deployment](t, objects, "Deployment") {
		all[name] = workload{*d.Spec.Replicas, d.Spec.Selector.MatchLabels, d.Spec.Template}
	}
	for name, s := range typed[appsv1.StatefulSet](t, objects, "StatefulSet") {
		all[name] = workload{*s.Spec.Replicas, s.Spec.Selector.MatchLabels, s.Spec.Template}
	}
	return all
}

// TestPodsAreRestricted: Pod Security admits all pods at its level restricted.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for variant, values := range variants {
		for name, of := range workloads(t, mustRender(t, values)) {
			template := of.template
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
			if !result.Allowed {
				t.Errorf("%s: %s is rejected: %s", variant, name, result.ForbiddenDetail())
			}
		}
	}
}

// TestPods: what each pod has beside that.
func TestPods(t *testing.T) {
	objects := mustRender(t, everything)
	accounts := typed[corev1.ServiceAccount](t, objects, "ServiceAccount")
	all := workloads(t, objects)
	if len(all) != 7 {
		t.Errorf("%d workloads, want seven", len(all))
	}
	for name, of := range all {
		spec := of.template.Spec
		container := spec.Containers[0]
		if accounts[spec.ServiceAccountName] == nil || spec.ServiceAccountName != name {
			t.Errorf("%s runs as %q", name, spec.ServiceAccountName)
		}
		if of.replicas < 2 || len(spec.TopologySpreadConstraints) != 2 {
			t.Errorf("%s has %d replicas, spread by %v", name, of.replicas, spec.TopologySpreadConstraints)
		}
		if !*container.SecurityContext.ReadOnlyRootFilesystem || container.Resources.Requests.Memory().IsZero() ||
			container.Resources.Requests.Cpu().IsZero() || container.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s has %v and %v", name, container.SecurityContext, container.Resources)
		}
		if container.ReadinessProbe == nil || container.LivenessProbe == nil {
			t.Errorf("%s has no probes", name)
		}
		if len(spec.ImagePullSecrets) != 1 {
			t.Errorf("%s pulls its image by %v", name, spec.ImagePullSecrets)
		}
	}
}

// TestImages: an image has the name of its program, unless it has a repository
// of its own.
func TestImages(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"": {"vc-manager": "vc-manager:dev", "vc-syncer": "vc-syncer:dev", "vc-host": "vc-host:dev", "vc-store": "etcd:3.6.16-0"},
		everything: {
			"vc-manager": "registry.example/team/vc-manager@sha256:" + digest, "vc-syncer": "mirror.example/syncer:v1",
			"vn-agent": "registry.example/team/vn-agent:v1", "vc-dns": "registry.example/team/vc-dns:v1",
			"vc-gateway": "registry.example/team/vc-gateway:v1",
			"vc-host":    "registry.example/team/vc-host:v1", "vc-store": "registry.example/team/etcd:3.6.16-0",
		},
	} {
		got := map[string]string{}
		for name, of := range workloads(t, mustRender(t, values)) {
			got[name] = of.template.Spec.Containers[0].Image
		}
		if !maps.Equal(got, want) {
			t.Errorf("the images are %v, want %v", got, want)
		}
	}
}

// TestPodsAreSelected: each pod has a disruption budget and a NetworkPolicy of
// its own, and each Service has ports of the pods that it selects.
func TestPodsAreSelected(t *testing.T) {
	objects := mustRender(t, everything)
	all := workloads(t, objects)
	budgets := typed[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	for name, of := range all {
		pods := labels.Set(of.template.Labels)
		selectors := map[string]map[string]string{"workload": of.selector}
		if budgets[name] == nil || policies[name] == nil {
			t.Errorf("%s has the budget %v and the policy %v", name, budgets[name], policies[name])
			continue
		}
		selectors["budget"], selectors["policy"] = budgets[name].Spec.Selector.MatchLabels, policies[name].Spec.PodSelector.MatchLabels
		for of, selector := range selectors {
			if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pods) {
				t.Errorf("the selector of the %s of %s is %v, and the pods have %v", of, name, selector, pods)
			}
		}
	}
	for name, service := range typed[corev1.Service](t, objects, "Service") {
		selector := maps.Clone(service.Spec.Selector)
		delete(selector, appsv1.StatefulSetPodNameLabel) // set by the controller
		for _, port := range service.Spec.Ports {
			if !selects(all, selector, port) {
				t.Errorf("Service %s has a port %s that no pod has", name, port.TargetPort.String())
			}
		}
	}
}

// selects reports whether a pod of a selector has a Service's port.
func selects(all map[string]workload, selector map[string]string, port corev1.ServicePort) bool {
	for _, of := range all {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(of.template.Labels)) {
			continue
		}
		for _, p := range of.template.Spec.Containers[0].Ports {
			if p.Name == port.TargetPort.StrVal || port.TargetPort.StrVal == "" && p.ContainerPort == port.Port {
				return true
			}
		}
	}
	return false
}

var flagName = regexp.MustCompile(`^--?([a-z][a-z-]*)`)

// TestFlags: the programs have all flags that the chart passes.
func TestFlags(t *testing.T) {
	for variant, values := range variants {
		for name, of := range workloads(t, mustRender(t, values)) {
			container := of.template.Spec.Containers[0]
			program := filepath.Join(root, "bin", container.Name)
			help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
			if err != nil && len(help) == 0 {
				t.Fatalf("%v: make build builds the programs", err)
			}
			known := flags(string(help))
			for _, arg := range container.Args {
				flag := flagName.FindStringSubmatch(arg)
				if flag != nil && !slices.Contains(known, flag[1]) {
					t.Errorf("%s: %s has no flag %s", variant, name, flag[0])
				}
			}
		}
	}
}

// flags returns the names of the flags in the help of a program.
func flags(help string) []string {
	var names []string
	for line := range strings.Lines(help) {
		for _, field := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
			flag := flagName.FindStringSubmatch(field)
			if flag == nil {
				break
			}
			names = append(names, flag[1])
		}
	}
	return names
}
