package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// podReferences returns the objects that a pod refers to. Without its service
// account it would be rejected; for the others it waits on its node, like any
// pod.
func podReferences(pod *corev1.Pod) []kinds.Reference {
	var refs references
	refs.add("ServiceAccount", pod.Spec.ServiceAccountName)
	refs.required()
	for _, s := range pod.Spec.ImagePullSecrets {
		refs.add("Secret", s.Name)
	}
	for i := range pod.Spec.Volumes {
		refs.addVolume(&pod.Spec.Volumes[i])
		refs.add("PersistentVolumeClaim", claimName(pod.Name, &pod.Spec.Volumes[i]))
	}
	for _, c := range pod.Spec.ResourceClaims {
		refs.add("ResourceClaim", ptr.Deref(c.ResourceClaimName, ""))
		refs.add("ResourceClaimTemplate", ptr.Deref(c.ResourceClaimTemplateName, ""))
	}
	for c := range containersOf(&pod.Spec) {
		refs.addContainer(c)
	}
	return refs
}

// references collects references without duplicates.
type references []kinds.Reference

func (r *references) add(kind, name string) { r.addIn("", kind, name) }

// addIn adds a reference to an object in a namespace; empty for the namespace
// of the object that refers to it.
func (r *references) addIn(namespace, kind, name string) {
	ref := kinds.Reference{Kind: kind, Name: name, Namespace: namespace}
	if name != "" && !slices.Contains(*r, ref) {
		*r = append(*r, ref)
	}
}

// kindName returns the name of a kind for references; that of a custom resource
// includes its group.
func kindName(group *string, kind string) string {
	return schema.GroupKind{Group: ptr.Deref(group, ""), Kind: kind}.String()
}

// required marks all references so far as required.
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

// addDriver adds the object that the driver of a volume needs.
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
	case v.CephFS != nil && v.CephFS.SecretRef != nil:
		r.add("Secret", v.CephFS.SecretRef.Name)
	case v.RBD != nil && v.RBD.SecretRef != nil:
		r.add("Secret", v.RBD.SecretRef.Name)
	case v.ScaleIO != nil && v.ScaleIO.SecretRef != nil:
		r.add("Secret", v.ScaleIO.SecretRef.Name)
	case v.StorageOS != nil && v.StorageOS.SecretRef != nil:
		r.add("Secret", v.StorageOS.SecretRef.Name)
	case v.AzureFile != nil:
		r.add("Secret", v.AzureFile.SecretName)
	case v.Glusterfs != nil:
		r.add("Endpoints", v.Glusterfs.EndpointsName)
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
