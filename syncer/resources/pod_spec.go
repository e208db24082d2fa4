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

// podReferences are the objects that a pod's containers need. Without its service account it would be refused; for the others
// it waits on its node, as any pod does.
func podReferences(pod *corev1.Pod) []engine.Reference {
	var refs references
	refs.add("ServiceAccount", pod.Spec.ServiceAccountName)
	refs.required()
	for _, s := range pod.Spec.ImagePullSecrets {
		refs.add("Secret", s.Name)
	}
	for i := range pod.Spec.Volumes {
		refs.addVolume(&pod.Spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			refs.addContainer(&containers[i])
		}
	}
	return refs
}

// references collects references, each once.
type references []engine.Reference

func (r *references) add(kind, name string) {
	if name == "" {
		return
	}
	for _, have := range *r {
		if have.Kind == kind && have.Name == name {
			return
		}
	}
	*r = append(*r, engine.Reference{Kind: kind, Name: name})
}

// required marks what was added so far.
func (r *references) required() {
	for i := range *r {
		(*r)[i].Required = true
	}
}

func (r *references) addVolume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		r.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.add("Secret", v.Secret.SecretName)
	}
	r.addDriver(v)
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			r.add("ConfigMap", s.ConfigMap.Name)
		}
		if s.Secret != nil {
			r.add("Secret", s.Secret.Name)
		}
	}
}

// addDriver adds the secret by which the driver of a volume gets at it.
func (r *references) addDriver(v *corev1.Volume) {
	switch {
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		r.add("Secret", v.CSI.NodePublishSecretRef.Name)
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		r.add("Secret", v.ISCSI.SecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		r.add("Secret", v.FlexVolume.SecretRef.Name)
	case v.Cinder != nil && v.Cinder.SecretRef != nil:
		r.add("Secret", v.Cinder.SecretRef.Name)
	case v.AzureFile != nil:
		r.add("Secret", v.AzureFile.SecretName)
	}
}

func (r *references) addContainer(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.add("ConfigMap", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			r.add("Secret", from.SecretRef.Name)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add("ConfigMap", ref.Name)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			r.add("Secret", ref.Name)
		}
	}
}
