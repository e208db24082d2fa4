package resources

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestProfilesOfTheNode(t *testing.T) {
	profiles := map[string]corev1.SecurityContext{
		"seccompProfile.type": {SeccompProfile: &corev1.SeccompProfile{
			Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("loose.json"),
		}},
		"appArmorProfile.type": {AppArmorProfile: &corev1.AppArmorProfile{
			Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("loose"),
		}},
		"windowsOptions.gmsaCredentialSpecName": {WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("admin")}},
		"windowsOptions.gmsaCredentialSpec":     {WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new("{}")}},
	}
	places := map[string]func(p *corev1.Pod, c corev1.SecurityContext){
		"spec.securityContext": func(p *corev1.Pod, c corev1.SecurityContext) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{
				SeccompProfile: c.SeccompProfile, AppArmorProfile: c.AppArmorProfile, WindowsOptions: c.WindowsOptions,
			}
		},
		"spec.containers[0].securityContext": func(p *corev1.Pod, c corev1.SecurityContext) { p.Spec.Containers[0].SecurityContext = &c },
		"spec.initContainers[0].securityContext": func(p *corev1.Pod, c corev1.SecurityContext) {
			p.Spec.InitContainers = []corev1.Container{{SecurityContext: &c}}
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for place, put := range places {
		for profile, settings := range profiles {
			pod := tenantPod(func(p *corev1.Pod) { put(p, settings) })
			if err := k.Admit(view, pod); err == nil || !strings.Contains(err.Error(), place+"."+profile+": Forbidden") {
				t.Errorf("%s.%s: rejected because of %v", place, profile, err)
			}
			for _, policy := range []tenancyv1alpha1.TenantPolicy{{AllowNodeProfiles: true}, {PodSecurity: tenancyv1alpha1.PodSecurityPrivileged}} {
				if err := k.Admit(under(policy), pod); err != nil {
					t.Errorf("%s.%s, allowed: %v", place, profile, err)
				}
			}
		}
	}
}

// TestEphemeralContainersAreAdmitted checks that a rejected one stays in the
// tenant, and blocks no other.
func TestEphemeralContainersAreAdmitted(t *testing.T) {
	debugger := func(name string, profile corev1.SeccompProfileType) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, SecurityContext: &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: profile}},
		}}
	}
	tenant := tenantPod(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			debugger("loose", corev1.SeccompProfileTypeLocalhost), debugger("strict", corev1.SeccompProfileTypeRuntimeDefault),
		}
	})
	sub := subresource(t, "ephemeralcontainers")
	super := tenantPod()
	sub.Merge(view, super, tenant)
	if got := super.Spec.EphemeralContainers; len(got) != 1 || got[0].Name != "strict" {
		t.Errorf("the copy has %v", got)
	}
	if err := sub.Admit(view, super, tenant); err == nil || !strings.Contains(err.Error(), "spec.ephemeralContainers[0].securityContext") {
		t.Errorf("rejected because of %v", err)
	}
	allowed := under(tenancyv1alpha1.TenantPolicy{AllowNodeProfiles: true})
	sub.Merge(allowed, super, tenant)
	if n := len(super.Spec.EphemeralContainers); n != 2 {
		t.Errorf("the copy has %d containers, where both are allowed", n)
	}
	if err := sub.Admit(view, super, tenant); err != nil {
		t.Errorf("an existing container is rejected: %v", err)
	}
}

// securityFates states which component decides about each field of a security
// context. A new field fails the test until it is decided.
var securityFates = map[string]string{
	"Capabilities": byLevel, "Privileged": byLevel, "SELinuxOptions": byLevel, "RunAsUser": byLevel, "RunAsNonRoot": byLevel,
	"AllowPrivilegeEscalation": byLevel, "ProcMount": byLevel, "Sysctls": byLevel, "HostProcess": byLevel,
	"RunAsGroup": harmless, "ReadOnlyRootFilesystem": harmless, "SupplementalGroups": harmless, "SupplementalGroupsPolicy": harmless,
	"FSGroup": harmless, "FSGroupChangePolicy": harmless, "SELinuxChangePolicy": harmless, "RunAsUserName": harmless,
	"SeccompProfile": ours, "AppArmorProfile": ours, "WindowsOptions": ours, "GMSACredentialSpecName": ours, "GMSACredentialSpec": ours,
}

const (
	byLevel  = "the Pod Security level"
	harmless = "none: it is about the container's own"
	ours     = "admitProfiles"
)

func TestEverySecurityFieldIsDecided(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[corev1.SecurityContext](), reflect.TypeFor[corev1.PodSecurityContext](),
		reflect.TypeFor[corev1.WindowsSecurityContextOptions](),
	} {
		for f := range of.Fields() {
			seen[f.Name] = true
			if securityFates[f.Name] == "" {
				t.Errorf("%s.%s is not decided", of, f.Name)
			}
		}
	}
	if len(seen) != len(securityFates) {
		t.Errorf("the API has %d fields, and %d are decided", len(seen), len(securityFates))
	}
}
