package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodReferences(t *testing.T) {
	required := kinds.Reference{Kind: "ServiceAccount", Name: "default", Required: true}
	secret := func(name string) kinds.Reference { return kinds.Reference{Kind: "Secret", Name: name} }
	settings := func(name string) kinds.Reference { return kinds.Reference{Kind: "ConfigMap", Name: name} }
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	everywhere := func(name string) corev1.Container {
		return corev1.Container{
			EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: *ref(name + "-all")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *ref(name + "-all")}},
			},
			Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "x"},
				from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: *ref(name + "-key")}}),
				from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *ref(name + "-key")}}),
				from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.name")}),
			},
		}
	}

	tests := map[string]struct {
		spec func(*corev1.PodSpec)
		want []kinds.Reference
	}{
		"the service account alone is required": {
			func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}} },
			[]kinds.Reference{required, secret("registry")},
		},
		"a pod without a service account": {
			func(s *corev1.PodSpec) { s.ServiceAccountName = "" }, nil,
		},
		"config maps and secrets of volumes": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(
					corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref("c")}},
					corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
					corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: *ref("pc")}},
						{Secret: &corev1.SecretProjection{LocalObjectReference: *ref("ps")}},
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
					}}},
					corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				)
			},
			[]kinds.Reference{required, settings("c"), secret("s"), settings("pc"), secret("ps")},
		},
		"claims of devices, and their templates": {
			func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{
					{Name: "gpu", ResourceClaimName: new("shared")}, {Name: "nic", ResourceClaimTemplateName: new("own")},
				}
			},
			[]kinds.Reference{required, {Kind: "ResourceClaim", Name: "shared"}, {Kind: "ResourceClaimTemplate", Name: "own"}},
		},
		"the tenant's own root CA, by the tenant's name": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref(rootCA)}})
			},
			[]kinds.Reference{required, settings(rootCA)},
		},
		"secrets by which drivers get at volumes": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(
					corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}},
					corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref("iscsi")}},
					corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref("flex")}},
					corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: ref("cinder")}},
					corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}},
				)
			},
			[]kinds.Reference{required, secret("csi"), secret("iscsi"), secret("flex"), secret("cinder"), secret("azure")},
		},
		"drivers that need no secret": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(
					corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}, corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}},
					corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{}}, corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{}},
				)
			},
			[]kinds.Reference{required},
		},
		"variables of containers, first of those that start first": {
			func(s *corev1.PodSpec) {
				s.InitContainers, s.Containers = []corev1.Container{everywhere("init")}, []corev1.Container{everywhere("app")}
			},
			[]kinds.Reference{
				required,
				settings("init-all"), secret("init-all"), settings("init-key"), secret("init-key"),
				settings("app-all"), secret("app-all"), settings("app-key"), secret("app-key"),
			},
		},
		"each once, and one of each kind": {
			func(s *corev1.PodSpec) {
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "default"}, {Name: "default"}, {}}
				s.Volumes = volumes(
					corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "default"}},
					corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref("default")}},
				)
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: *ref("default")}}}
			},
			[]kinds.Reference{required, secret("default"), settings("default")},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tenantPod()
			tt.spec(&pod.Spec)
			if diff := cmp.Diff(tt.want, k.References(pod), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}
