package resources

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// fate is how a field is synced down.
type fate string

const (
	same       fate = "the copy has the same"
	gone       fate = "the copy has none"
	refused    fate = "a pod that has it is refused"
	translated fate = "the copy has something else, which another test is about"
)

// podSpecFates decides about every field of a pod in the API. A new field fails
// the test until it is decided.
var podSpecFates = map[string]fate{
	"Volumes":             translated, // volumeFates
	"InitContainers":      translated, // containerFates
	"Containers":          translated, // containerFates
	"EphemeralContainers": gone,       // are synced down separately
	"RestartPolicy":       same,

	"TerminationGracePeriodSeconds": same,
	"ActiveDeadlineSeconds":         same,

	"DNSPolicy":    same,
	"NodeSelector": same,

	"ServiceAccountName":           same,
	"DeprecatedServiceAccount":     gone,
	"AutomountServiceAccountToken": translated, // to false

	"NodeName":    translated, // if the policy allows it
	"HostNetwork": same,       // if the policy allows it
	"HostPID":     same,       // if the policy allows it
	"HostIPC":     same,       // if the policy allows it

	"ShareProcessNamespace": same,
	"SecurityContext":       same,
	"ImagePullSecrets":      same,
	"Hostname":              same,
	"Subdomain":             same,
	"Affinity":              translated, // affinityTermFates
	"SchedulerName":         same,       // if the policy allows it
	"Tolerations":           translated, // if the policy allows them
	"HostAliases":           same,
	"PriorityClassName":     translated, // if the class is offered
	"Priority":              gone,       // follows from the class
	"DNSConfig":             same,
	"ReadinessGates":        same,
	"RuntimeClassName":      same, // if the class is offered
	"EnableServiceLinks":    same,
	"PreemptionPolicy":      gone, // follows from the class
	"Overhead":              gone, // follows from the class

	"TopologySpreadConstraints": translated, // spreadFates

	"SetHostnameAsFQDN": same, // without a subdomain
	"OS":                same,
	"HostUsers":         same,
	"SchedulingGates":   same,
	"ResourceClaims":    same,
	"Resources":         same,
	"HostnameOverride":  same,
	"SchedulingGroup":   refused,
}

// containerFates decides about the fields of containers, including ephemeral
// ones.
var containerFates = map[string]fate{
	"Name": same, "Image": same, "Command": same, "Args": same, "WorkingDir": same,
	"Ports":     same,       // host ports if the policy allows them
	"EnvFrom":   translated, // names of ConfigMaps
	"Env":       translated, // envFates
	"Resources": same, "ResizePolicy": same, "RestartPolicy": same, "RestartPolicyRules": same,
	"VolumeMounts": same, "VolumeDevices": same,
	"LivenessProbe": same, "ReadinessProbe": same, "StartupProbe": same, "Lifecycle": same, // TestHostsOfProbes
	"TerminationMessagePath": same, "TerminationMessagePolicy": same, "ImagePullPolicy": same,
	"SecurityContext": same, // securityFates
	"Stdin":           same, "StdinOnce": same, "TTY": same,
}

// envFates decides about the sources of variables.
var envFates = map[string]fate{
	"FieldRef": translated, "ResourceFieldRef": same, "ConfigMapKeyRef": translated, "SecretKeyRef": same, "FileKeyRef": same,
}

// volumeFates decides about the sources of volumes in volumeAccess that are
// synced down.
var volumeFates = map[string]fate{
	"HostPath": same, "EmptyDir": same, "Secret": same, "Image": same, "CSI": same,
	"ConfigMap": translated, "DownwardAPI": translated, "Projected": translated, // projectionFates
	"PersistentVolumeClaim": translated, "Ephemeral": gone, // is the claim that the tenant's controller creates for it
	"NFS": same, "ISCSI": same, "FC": same, "GitRepo": same, "FlexVolume": same,
	"GCEPersistentDisk": same, "AWSElasticBlockStore": same, "Glusterfs": same, "RBD": same, "Cinder": same, "CephFS": same,
	"Flocker": same, "AzureFile": same, "VsphereVolume": same, "Quobyte": same, "AzureDisk": same, "PhotonPersistentDisk": same,
	"PortworxVolume": same, "ScaleIO": same, "StorageOS": same,
}

// projectionFates decides about the sources of projected volumes.
var projectionFates = map[string]fate{
	"Secret": same, "DownwardAPI": translated, "ConfigMap": translated,
	"ServiceAccountToken": gone, "ClusterTrustBundle": gone, "PodCertificate": gone, // belong to the super cluster
}

// affinityTermFates decides about the fields of affinity terms.
var affinityTermFates = map[string]fate{
	"LabelSelector": translated, "Namespaces": translated, "TopologyKey": same, "NamespaceSelector": translated,
	"MatchLabelKeys": gone, "MismatchLabelKeys": gone, // are in the selector
}

// spreadFates decides about the fields of topology spread constraints.
var spreadFates = map[string]fate{
	"MaxSkew": same, "TopologyKey": same, "WhenUnsatisfiable": same, "LabelSelector": translated, "MinDomains": same,
	"NodeAffinityPolicy": same, "NodeTaintsPolicy": same, "MatchLabelKeys": gone, // are in the selector
}

// podStatusFates decides about the fields that are synced up.
var podStatusFates = map[string]fate{
	"ObservedGeneration": translated, "Phase": same, "Conditions": translated, "Message": translated, "Reason": same,
	"NominatedNodeName": gone, "HostIP": same, "HostIPs": same, "PodIP": same, "PodIPs": same, "StartTime": same,
	"InitContainerStatuses": translated, "ContainerStatuses": translated, "EphemeralContainerStatuses": translated,
	"QOSClass": translated, "Resize": same, // the tenant's own
	"ResourceClaimStatuses": translated, "ExtendedResourceClaimStatus": translated, // the tenant's own
	"NodeAllocatableResourceClaimStatuses": translated, // the tenant's own
	"AllocatedResources":                   same, "Resources": same,
}

// TestEveryFieldHasAFate checks that no field is synced without a decision.
func TestEveryFieldHasAFate(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tenant := fill(&corev1.Pod{})
	everyPodField(tenant)
	super, err := k.Desired(view, tenant)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, podSpecFates, tenant.Spec, super.Spec)
	holds(t, containerFates, tenant.Spec.Containers[0], super.Spec.Containers[0])
	holds(t, containerFates, tenant.Spec.InitContainers[0], super.Spec.InitContainers[0])
	holds(t, envFates, *tenant.Spec.Containers[0].Env[0].ValueFrom, *super.Spec.Containers[0].Env[0].ValueFrom)
	holds(t, volumeFates, tenant.Spec.Volumes[0].VolumeSource, super.Spec.Volumes[0].VolumeSource)
	sources := super.Spec.Volumes[0].Projected.Sources
	holds(t, projectionFates, tenant.Spec.Volumes[0].Projected.Sources[1], sources[len(sources)-1])
	term := func(p *corev1.Pod) corev1.PodAffinityTerm {
		return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	}
	holds(t, affinityTermFates, term(tenant), term(super))
	holds(t, spreadFates, tenant.Spec.TopologySpreadConstraints[0], super.Spec.TopologySpreadConstraints[0])

	super = fill(&corev1.Pod{})
	shown := tenantPod()
	k.Status(view, shown, super)
	holds(t, podStatusFates, super.Status, shown.Status)

	super = tenantPod()
	subresource(t, "ephemeralcontainers").Merge(view, super, tenant)
	holds(t, containerFates, corev1.Container(tenant.Spec.EphemeralContainers[0].EphemeralContainerCommon),
		corev1.Container(super.Spec.EphemeralContainers[0].EphemeralContainerCommon))
}

// TestRefusedFields checks that a pod with such a field is rejected because of
// it.
func TestRefusedFields(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	full := reflect.ValueOf(&fill(&corev1.Pod{}).Spec).Elem()
	for name, fate := range podSpecFates {
		pod := tenantPod()
		reflect.ValueOf(&pod.Spec).Elem().FieldByName(name).Set(full.FieldByName(name))
		err := k.Admit(view, pod)
		if fate == refused && (err == nil || !strings.Contains(strings.ToLower(err.Error()), "spec."+strings.ToLower(name))) {
			t.Errorf("a pod with %s is refused because of %v", name, err)
		}
	}
}

// holds fails the test if a field has no fate, or another one.
func holds(t *testing.T, fates map[string]fate, from, to any) {
	t.Helper()
	was, is := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range was.NumField() {
		name := was.Type().Field(i).Name
		if was.Field(i).IsZero() && fates[name] != gone && fates[name] != translated {
			t.Errorf("%s.%s: this test does not set it", was.Type(), name)
		}
		switch fate := fates[name]; fate {
		case same:
			if !cmp.Equal(was.Field(i).Interface(), is.Field(i).Interface()) {
				t.Errorf("%s.%s: %s, is the plan; it was %v and is %v", was.Type(), name, fate, was.Field(i), is.Field(i))
			}
		case gone:
			if !is.Field(i).IsZero() {
				t.Errorf("%s.%s: %s, is the plan; it has %v", was.Type(), name, fate, is.Field(i))
			}
		case translated, refused:
		default:
			t.Errorf("%s.%s: it is not decided", was.Type(), name)
		}
	}
	if n := was.NumField(); n != len(fates) {
		t.Errorf("%s has %d fields, and %d fates", was.Type(), n, len(fates))
	}
}
