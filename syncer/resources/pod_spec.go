package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// desiredPod returns the copy of a tenant's pod.
func desiredPod(v kinds.View, tenant *corev1.Pod) (*corev1.Pod, error) {
	if err := checkSize(podSize(&tenant.Spec)); err != nil {
		return nil, err
	}
	spec := tenant.Spec.DeepCopy()
	if !v.Tenant.Policy.AllowNodeName || scheduled(tenant) {
		spec.NodeName = ""
	}
	// A tenant's pod must not access the super cluster's apiserver.
	spec.AutomountServiceAccountToken = new(false)
	spec.DeprecatedServiceAccount = ""
	spec.PriorityClassName = priorityClass(v, spec.PriorityClassName)
	// The super cluster sets the fields that follow from a class.
	spec.Priority, spec.PreemptionPolicy, spec.Overhead = nil, nil, nil
	spec.TerminationGracePeriodSeconds = v.Tenant.GracePeriod(spec.TerminationGracePeriodSeconds)
	spec.Tolerations = tolerations(v.Tenant.Policy, spec.Tolerations)
	omitNodeLabels(v.Tenant.Policy, spec)
	translateAffinity(v.Tenant, spec.Affinity, tenant.Labels)
	translateSpread(v.Tenant, spec.TopologySpreadConstraints, tenant.Labels)

	fields := fieldsFor(v.Tenant, tenant)
	translateVolumes(spec.Volumes, fields)
	useClaims(tenant.Name, spec.Volumes)
	environment := apiserverEnvironment(v.Tenant)
	for c := range containersOf(spec) {
		translateContainer(c, fields)
		addEnvironment(c, environment)
		boundProbes(v.Tenant, c)
	}
	translateDNS(v, spec)
	translateHostname(v, tenant.Name, spec)
	// They can only be added to an existing pod. The copy already has the
	// annotations that they read.
	spec.EphemeralContainers = nil

	labels := networkLabels()
	labels[names.Cluster] = v.Tenant.Key
	if limitsIngress(v, tenant.Labels) {
		labels[names.OwnIngress] = "true"
	}
	if limitsEgress(v, tenant.Labels) {
		labels[names.OwnEgress] = "true"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: podNotes(tenant, fields)},
		Spec:       *spec,
	}, nil
}

// boundProbes bounds the grace periods of a container's probes.
func boundProbes(t translate.Tenant, c *corev1.Container) {
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			probe.TerminationGracePeriodSeconds = t.GracePeriod(probe.TerminationGracePeriodSeconds)
		}
	}
}

// podNotes returns the annotations for later changes of the copy, and for the
// fields that containers read.
func podNotes(tenant *corev1.Pod, fields *podFields) map[string]string {
	notes := fields.thatFit()
	if len(tenant.Spec.SchedulingGates) > 0 {
		notes[names.Values] = joinGates(tenant.Spec.SchedulingGates)
	}
	return notes
}

// translateVolumes changes volumes to the content for the tenant: its root CA,
// its own names, and tokens of its own apiserver.
func translateVolumes(volumes []corev1.Volume, fields *podFields) {
	for i := range volumes {
		v := &volumes[i]
		if v.ConfigMap != nil {
			v.ConfigMap.Name = translate.SuperConfigMapName(v.ConfigMap.Name)
		}
		if v.DownwardAPI != nil {
			fields.translateFiles(v.DownwardAPI.Items)
		}
		if v.Projected != nil {
			v.Projected.Sources = translateSources(v.Name, v.Projected.Sources, fields)
		}
	}
}

func translateSources(volume string, sources []corev1.VolumeProjection, fields *podFields) []corev1.VolumeProjection {
	kept := sources[:0]
	for i, s := range sources {
		if s.ClusterTrustBundle != nil || s.PodCertificate != nil {
			continue
		}
		if token := s.ServiceAccountToken; token != nil {
			s = corev1.VolumeProjection{Secret: keptToken(fields.tenant.Name, volume, i, token.Path)}
		}
		if s.ConfigMap != nil {
			s.ConfigMap.Name = translate.SuperConfigMapName(s.ConfigMap.Name)
		}
		if s.DownwardAPI != nil {
			fields.translateFiles(s.DownwardAPI.Items)
		}
		kept = append(kept, s)
	}
	return kept
}

func translateContainer(c *corev1.Container, fields *podFields) {
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			ref.Name = translate.SuperConfigMapName(ref.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		fields.translate(from.FieldRef)
		if from.ConfigMapKeyRef != nil {
			from.ConfigMapKeyRef.Name = translate.SuperConfigMapName(from.ConfigMapKeyRef.Name)
		}
	}
}
