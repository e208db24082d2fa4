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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// variants are values that the specs of pods depend on.
var variants = map[string]string{"defaults": "", "everything": everything, "leader election": elect, "cert-manager": certManager}

// TestPodsAreRestricted: Pod Security admits all pods at its level restricted.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for variant, values := range variants {
		for name, deployment := range typed[appsv1.Deployment](t, mustRender(t, values), "Deployment") {
			template := deployment.Spec.Template
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
	deployments := typed[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != 4 {
		t.Errorf("%d Deployments, want four", len(deployments))
	}
	for name, deployment := range deployments {
		spec := deployment.Spec.Template.Spec
		container := spec.Containers[0]
		if accounts[spec.ServiceAccountName] == nil || spec.ServiceAccountName != name {
			t.Errorf("%s runs as %q", name, spec.ServiceAccountName)
		}
		if *deployment.Spec.Replicas < 2 || len(spec.TopologySpreadConstraints) != 2 {
			t.Errorf("%s has %d replicas, spread by %v", name, *deployment.Spec.Replicas, spec.TopologySpreadConstraints)
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
		"": {"vc-manager": "vc-manager:dev", "vc-syncer": "vc-syncer:dev"},
		everything: {
			"vc-manager": "registry.example/team/vc-manager@sha256:" + digest, "vc-syncer": "mirror.example/syncer:v1",
			"vn-agent": "registry.example/team/vn-agent:v1", "vc-dns": "registry.example/team/vc-dns:v1",
		},
	} {
		got := map[string]string{}
		for name, deployment := range typed[appsv1.Deployment](t, mustRender(t, values), "Deployment") {
			got[name] = deployment.Spec.Template.Spec.Containers[0].Image
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
	deployments := typed[appsv1.Deployment](t, objects, "Deployment")
	budgets := typed[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	for name, deployment := range deployments {
		pods := labels.Set(deployment.Spec.Template.Labels)
		selectors := map[string]map[string]string{"Deployment": deployment.Spec.Selector.MatchLabels}
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
		for _, port := range service.Spec.Ports {
			if !selects(deployments, service.Spec.Selector, port) {
				t.Errorf("Service %s has a port %s that no pod has", name, port.TargetPort.String())
			}
		}
	}
}

// selects reports whether a pod of a selector has a Service's port.
func selects(deployments map[string]*appsv1.Deployment, selector map[string]string, port corev1.ServicePort) bool {
	for _, deployment := range deployments {
		template := deployment.Spec.Template
		if !labels.SelectorFromSet(selector).Matches(labels.Set(template.Labels)) {
			continue
		}
		for _, p := range template.Spec.Containers[0].Ports {
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
		for name, deployment := range typed[appsv1.Deployment](t, mustRender(t, values), "Deployment") {
			help, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", name), "--help").CombinedOutput()
			if err != nil && len(help) == 0 {
				t.Fatalf("%v: make build builds the programs", err)
			}
			known := flags(string(help))
			for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
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
