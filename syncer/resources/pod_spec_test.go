package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// from returns a variable with a source.
func from(source corev1.EnvVarSource) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &source}
}

// field returns a variable with a field of the pod.
func fieldRef(path string) *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{FieldPath: path}
}

func configMap(name string) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: name}
}

// volumes returns volumes with these sources.
func volumes(sources ...corev1.VolumeSource) []corev1.Volume {
	out := make([]corev1.Volume, len(sources))
	for i, s := range sources {
		out[i] = corev1.Volume{Name: string(rune('a' + i)), VolumeSource: s}
	}
	return out
}

const (
	rootCA      = "kube-root-ca.crt"
	movedRootCA = "tenant-kube-root-ca.crt"

	namespaceNote = "metadata.annotations['tenancy.x-k8s.io/namespace']"
	uidNote       = "metadata.annotations['tenancy.x-k8s.io/uid']"
)

func TestPodSpecGoesDown(t *testing.T) {
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	ca := func(name string) corev1.VolumeProjection {
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: configMap(name)}}
	}
	item := func(path string) corev1.VolumeProjection {
		return corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{
			Items: []corev1.DownwardAPIVolumeFile{{Path: "x", FieldRef: fieldRef(path)}},
		}}
	}
	kept := func(key string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: configMap(names.TokenSecret("web")), Items: []corev1.KeyToPath{{Key: key, Path: "token"}},
		}}
	}
	secret := corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: configMap("s")}}
	projected := func(sources ...corev1.VolumeProjection) []corev1.Volume {
		return volumes(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
	}

	tests := map[string]struct{ tenant, want func(*corev1.PodSpec) }{
		"a pod gets the node that it was bound to from the scheduler": {
			func(s *corev1.PodSpec) { s.NodeName = "node-1" }, nil,
		},
		"common fields are copied": {
			func(s *corev1.PodSpec) {
				s.Hostname, s.Subdomain, s.RestartPolicy = "web-0", "web", corev1.RestartPolicyNever
				s.NodeSelector, s.TerminationGracePeriodSeconds = map[string]string{"a": "1"}, new(int64(5))
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
				s.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			func(s *corev1.PodSpec) {
				s.Hostname, s.Subdomain, s.RestartPolicy = "web-0", "web", corev1.RestartPolicyNever
				s.NodeSelector, s.TerminationGracePeriodSeconds = map[string]string{"a": "1"}, new(int64(5))
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
				s.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
		},
		"no token of the super cluster is mounted, whatever the tenant declares": {
			func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = new(true) }, nil,
		},
		"the old name of the service account is dropped": {
			func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "default" }, nil,
		},
		"fields that follow from classes are dropped": {
			func(s *corev1.PodSpec) {
				s.PriorityClassName, s.Priority = "gold", new(int32(1000))
				s.PreemptionPolicy = new(corev1.PreemptLowerPriority)
				s.RuntimeClassName, s.Overhead = new("gvisor"), corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			func(s *corev1.PodSpec) { s.PriorityClassName, s.RuntimeClassName = "gold", new("gvisor") },
		},
		"ephemeral containers cannot be created": {
			func(s *corev1.PodSpec) { s.EphemeralContainers = make([]corev1.EphemeralContainer, 1) }, nil,
		},
		"tokens come out of the Secret that they are kept in": {
			func(s *corev1.PodSpec) {
				s.Volumes = projected(token, ca(rootCA), secret, token, item("metadata.namespace"))
			},
			func(s *corev1.PodSpec) {
				s.Volumes = projected(kept("a.0"), ca(movedRootCA), secret, kept("a.3"), item(namespaceNote))
			},
		},
		"the super cluster's trust bundles and certificates are left out": {
			func(s *corev1.PodSpec) {
				s.Volumes = projected(
					corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "x"}}, secret,
					corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "x"}},
				)
			},
			func(s *corev1.PodSpec) { s.Volumes = projected(secret) },
		},
		"the root CA is found under its other name": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: configMap(rootCA)}})
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: configMap(rootCA)}}}
				s.Containers[0].Env = []corev1.EnvVar{
					from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: configMap(rootCA), Key: "ca.crt"}}),
				}
			},
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: configMap(movedRootCA)}})
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: configMap(movedRootCA)}}}
				s.Containers[0].Env = []corev1.EnvVar{
					from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: configMap(movedRootCA), Key: "ca.crt"}}),
				}
			},
		},
		"other config maps, and secrets of that name, keep theirs": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(
					corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: configMap("settings")}},
					corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: rootCA}},
				)
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: configMap(rootCA)}}}
			},
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(
					corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: configMap("settings")}},
					corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: rootCA}},
				)
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: configMap(rootCA)}}}
			},
		},
		"the pod sees its own namespace and UID, in variables": {
			func(s *corev1.PodSpec) {
				s.Containers[0].Env = []corev1.EnvVar{
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.namespace")}),
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.uid")}),
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.name")}),
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.labels['metadata.uid']")}),
					{Name: "PLAIN", Value: "metadata.namespace"},
				}
				s.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.uid")})}}}
			},
			func(s *corev1.PodSpec) {
				s.Containers[0].Env = []corev1.EnvVar{
					from(corev1.EnvVarSource{FieldRef: fieldRef(namespaceNote)}),
					from(corev1.EnvVarSource{FieldRef: fieldRef(uidNote)}),
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.name")}),
					from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.labels['metadata.uid']")}),
					{Name: "PLAIN", Value: "metadata.namespace"},
				}
				s.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{from(corev1.EnvVarSource{FieldRef: fieldRef(uidNote)})}}}
			},
		},
		"and in volumes, some items of which are not fields": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "ns", FieldRef: fieldRef("metadata.namespace")},
					{Path: "uid", FieldRef: fieldRef("metadata.uid")},
					{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
				}}})
			},
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "ns", FieldRef: fieldRef(namespaceNote)},
					{Path: "uid", FieldRef: fieldRef(uidNote)},
					{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
				}}})
			},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant, want := tenantPod(), tenantPod()
			tt.tenant(&tenant.Spec)
			if tt.want != nil {
				tt.want(&want.Spec)
			}
			want.Spec.AutomountServiceAccountToken = new(false)
			want.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{
				"arktos.futurewei.com/network": "default", "tenancy.x-k8s.io/cluster": "team-71a1c3-blue",
			}}
			got, err := k.Desired(allowing("Pod", []string{"metadata.uid"}, nil), tenant)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPodCarriesWhatItsFieldsRead checks that the copy has the annotations that
// replace fields, with the tenant's values.
func TestPodCarriesWhatItsFieldsRead(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	copied := down(t, k, tenantPod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{
			from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.namespace")}),
			from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.uid")}),
		}
	}))
	for i, want := range []string{"default", "tenant-uid"} {
		path := copied.Spec.Containers[0].Env[i].ValueFrom.FieldRef.FieldPath
		key := strings.TrimSuffix(strings.TrimPrefix(path, "metadata.annotations['"), "']")
		if got := copied.Annotations[key]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestNetworkOfAPod(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tenant := tenantPod()
	if got := down(t, k, tenant).Labels[networkLabel]; got != "default" {
		t.Errorf("the network of a pod that names none is %q", got)
	}
	tenant.Labels = map[string]string{"arktos.futurewei.com/network": "mine", "tenancy.x-k8s.io/cluster": "forged"}
	if got := down(t, k, tenant).Labels[networkLabel]; got != "default" {
		t.Errorf("the network of a pod that may not name one is %q", got)
	}
	copied := downIn(t, allowing("Pod", []string{networkLabel}, nil), k, tenant)
	if got := copied.Labels[networkLabel]; got != "mine" {
		t.Errorf("the network of a pod that names one is %q", got)
	}
	if got := copied.Labels["tenancy.x-k8s.io/cluster"]; got != blue.Key {
		t.Errorf("the tenant of a pod that claims another is %q", got)
	}
}
