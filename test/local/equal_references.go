package local

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podReferences returns the ConfigMaps, Secrets and claims to which a pod
// refers.
func podReferences(obj client.Object) []reference {
	spec := &obj.(*corev1.Pod).Spec
	var r references
	for _, s := range spec.ImagePullSecrets {
		r.add("Secret", s.Name)
	}
	for i := range spec.Volumes {
		r.addVolume(&spec.Volumes[i])
	}
	for _, c := range spec.ResourceClaims {
		r.add("ResourceClaim", ptr.Deref(c.ResourceClaimName, ""))
		r.add("ResourceClaimTemplate", ptr.Deref(c.ResourceClaimTemplateName, ""))
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		r.addContainer(&c)
	}
	return r
}

// accountReferences returns the image pull secrets of a ServiceAccount.
func accountReferences(obj client.Object) []reference {
	var r references
	for _, s := range obj.(*corev1.ServiceAccount).ImagePullSecrets {
		r.add("Secret", s.Name)
	}
	return r
}

// ingressReferences returns the Secrets with the certificates of an Ingress.
func ingressReferences(obj client.Object) []reference {
	var r references
	for _, tls := range obj.(*networkingv1.Ingress).Spec.TLS {
		r.add("Secret", tls.SecretName)
	}
	return r
}

// references collects the references of one object.
type references []reference

func (r *references) add(kind, name string) {
	*r = append(*r, reference{kind: kind, name: name})
}

func (r *references) addVolume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		r.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.add("Secret", v.Secret.SecretName)
	}
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
		if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
			r.add("ConfigMap", env.ValueFrom.ConfigMapKeyRef.Name)
		}
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
			r.add("Secret", env.ValueFrom.SecretKeyRef.Name)
		}
	}
}
