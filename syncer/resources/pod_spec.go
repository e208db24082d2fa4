package resources

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

var errNodeName = errors.New("spec.nodeName must not be set: the super cluster's scheduler chooses the node; " +
	"use spec.nodeSelector or spec.affinity")

// desiredPod is the pod that the super cluster runs for a tenant's.
func desiredPod(v engine.View, tenant *corev1.Pod) (*corev1.Pod, error) {
	if tenant.Spec.NodeName != "" && !scheduled(tenant) {
		return nil, errNodeName
	}
	spec := tenant.Spec.DeepCopy()
	spec.NodeName = ""
	// A tenant's pod has no business with the super cluster's apiserver.
	spec.AutomountServiceAccountToken = new(false)
	spec.DeprecatedServiceAccount = ""
	// Priority is a matter between pods of one cluster; a class of the tenant means nothing in the other, or too much.
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = "", nil, nil
	// Ephemeral containers can only be added to a pod that exists.
	spec.EphemeralContainers = nil
	translateVolumes(spec.Volumes)
	translateContainers(spec.InitContainers)
	translateContainers(spec.Containers)
	labels := networkLabels()
	labels[names.Cluster] = v.Tenant.Key
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *spec}, nil
}

// translateVolumes has volumes show what the tenant knows: its root CA, its own names, and no token of the super cluster.
func translateVolumes(volumes []corev1.Volume) {
	for i := range volumes {
		v := &volumes[i]
		if v.ConfigMap != nil {
			v.ConfigMap.Name = translate.SuperConfigMapName(v.ConfigMap.Name)
		}
		if v.DownwardAPI != nil {
			translateItems(v.DownwardAPI.Items)
		}
		if v.Projected != nil {
			v.Projected.Sources = translateSources(v.Projected.Sources)
		}
	}
}

func translateSources(sources []corev1.VolumeProjection) []corev1.VolumeProjection {
	kept := sources[:0]
	for _, s := range sources {
		if s.ServiceAccountToken != nil || s.ClusterTrustBundle != nil || s.PodCertificate != nil {
			continue
		}
		if s.ConfigMap != nil {
			s.ConfigMap.Name = translate.SuperConfigMapName(s.ConfigMap.Name)
		}
		if s.DownwardAPI != nil {
			translateItems(s.DownwardAPI.Items)
		}
		kept = append(kept, s)
	}
	return kept
}

func translateItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		translateField(items[i].FieldRef)
	}
}

func translateContainers(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].EnvFrom {
			if ref := containers[i].EnvFrom[j].ConfigMapRef; ref != nil {
				ref.Name = translate.SuperConfigMapName(ref.Name)
			}
		}
		for j := range containers[i].Env {
			if from := containers[i].Env[j].ValueFrom; from != nil {
				translateEnv(from)
			}
		}
	}
}

func translateEnv(from *corev1.EnvVarSource) {
	translateField(from.FieldRef)
	if from.ConfigMapKeyRef != nil {
		from.ConfigMapKeyRef.Name = translate.SuperConfigMapName(from.ConfigMapKeyRef.Name)
	}
}

// translateField reads the fields that differ between the two sides from the annotations that keep the tenant's.
func translateField(ref *corev1.ObjectFieldSelector) {
	if ref == nil {
		return
	}
	switch ref.FieldPath {
	case "metadata.namespace":
		ref.FieldPath = fmt.Sprintf("metadata.annotations['%s']", names.Namespace)
	case "metadata.uid":
		ref.FieldPath = fmt.Sprintf("metadata.annotations['%s']", names.UID)
	}
}
