package resources

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// kubeletReads is the value that a kubelet sets for a fieldRef (Kubernetes
// documentation: Downward API).
func kubeletReads(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	key, ok := strings.CutPrefix(path, "metadata.annotations['")
	if ok {
		return pod.Annotations[strings.TrimSuffix(key, "']")]
	}
	if key, ok = strings.CutPrefix(path, "metadata.labels['"); ok {
		return pod.Labels[strings.TrimSuffix(key, "']")]
	}
	if path == "metadata.name" {
		return pod.Name
	}
	t.Fatalf("the copy reads %s", path)
	return ""
}

// TestPodReadsItsOwnFields checks that all metadata which a container can read,
// in variables and in files, is that of the tenant's pod.
func TestPodReadsItsOwnFields(t *testing.T) {
	tenant := tenantPod(func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web", "secret.example.com/team": "x", "tenancy.x-k8s.io/vcname": "forged"}
		p.Annotations = map[string]string{
			"note": "line one\nline \"two\"", "kubectl.kubernetes.io/restartedAt": "now", "secret.example.com/key": "k",
		}
	})
	allLabels := `app="web"` + "\n" + `secret.example.com/team="x"` + "\n" + `tenancy.x-k8s.io/vcname="forged"`
	allAnnotations := `kubectl.kubernetes.io/restartedAt="now"` + "\n" + `note="line one\nline \"two\""` + "\n" + `secret.example.com/key="k"`
	reads := map[string]string{
		"metadata.name":                                             "web",
		"metadata.namespace":                                        "default",
		"metadata.uid":                                              "tenant-uid",
		"metadata.labels['app']":                                    "web",
		"metadata.labels['secret.example.com/team']":                "x",
		"metadata.labels['tenancy.x-k8s.io/vcname']":                "forged",
		"metadata.labels['tenancy.x-k8s.io/vcnamespace']":           "",
		"metadata.labels['nobody']":                                 "",
		"metadata.annotations['note']":                              "line one\nline \"two\"",
		"metadata.annotations['kubectl.kubernetes.io/restartedAt']": "now",
		"metadata.annotations['secret.example.com/key']":            "k",
		"metadata.annotations['tenancy.x-k8s.io/cluster']":          "",
		"metadata.annotations['tenancy.x-k8s.io/ownerReferences']":  "",
		"metadata.annotations['k8s.v1.cni.cncf.io/network-status']": "",
	}
	inFiles := map[string]string{"metadata.labels": allLabels, "metadata.annotations": allAnnotations}
	maps.Copy(inFiles, reads)

	v := view
	v.Tenant.Opaque = []string{"secret.example.com/"}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	copied := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := tenant.DeepCopy()
		change(pod)
		desired, err := k.Desired(v, pod)
		if err != nil {
			t.Fatal(err)
		}
		translate.Merge(desired, v.Tenant.Down("Pod", pod, v.Tenant.SuperKey(client.ObjectKeyFromObject(pod))))
		desired.Name = pod.Name
		return desired
	}
	for path, want := range reads {
		super := copied(func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{from(corev1.EnvVarSource{FieldRef: fieldRef(path)})}
		})
		if got := kubeletReads(t, super, super.Spec.Containers[0].Env[0].ValueFrom.FieldRef.FieldPath); got != want {
			t.Errorf("a variable of %s is %q, want %q", path, got, want)
		}
		valid(t, super)
	}
	for path, want := range inFiles {
		files := []corev1.DownwardAPIVolumeFile{{Path: "x", FieldRef: fieldRef(path)}}
		super := copied(func(p *corev1.Pod) {
			p.Spec.Volumes = volumes(
				corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: files}},
				corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}},
				}}},
			)
			*p = *p.DeepCopy()
		})
		if got := kubeletReads(t, super, super.Spec.Volumes[0].DownwardAPI.Items[0].FieldRef.FieldPath); got != want {
			t.Errorf("a file of %s is %q, want %q", path, got, want)
		}
		if got := kubeletReads(t, super, super.Spec.Volumes[1].Projected.Sources[0].DownwardAPI.Items[0].FieldRef.FieldPath); got != want {
			t.Errorf("a file of %s among others is %q, want %q", path, got, want)
		}
		valid(t, super)
	}
}

// valid fails the test if the apiserver would reject the annotations of a pod.
func valid(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if errs := apivalidation.ValidateAnnotations(pod.Annotations, field.NewPath("metadata", "annotations")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

// TestFieldsFollow checks that files of labels and annotations change with
// them, and that the fields of an ephemeral container are available.
func TestFieldsFollow(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tenant := tenantPod(withAnnotationsFile(1))
	super := down(t, k, tenant)
	path := super.Spec.Volumes[0].DownwardAPI.Items[0].FieldRef.FieldPath

	tenant.Annotations["b"] = "2"
	super.Annotations = down(t, k, tenant).Annotations
	if got, want := kubeletReads(t, super, path), "a=\"a\"\nb=\"2\""; got != want {
		t.Errorf("after a change the file has %q, want %q", got, want)
	}

	tenant.Labels = map[string]string{"tenancy.x-k8s.io/mine": "1"}
	tenant.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Env: []corev1.EnvVar{from(corev1.EnvVarSource{FieldRef: fieldRef("metadata.labels['tenancy.x-k8s.io/mine']")})},
	}}}
	super.Annotations = down(t, k, tenant).Annotations
	subresource(t, "ephemeralcontainers").Merge(view, super, tenant)
	path = super.Spec.EphemeralContainers[0].Env[0].ValueFrom.FieldRef.FieldPath
	if got := kubeletReads(t, super, path); got != "1" {
		t.Errorf("an added container reads %q of a label, want 1", got)
	}
}

// TestFieldThatDoesNotFit checks that annotations that have become too long for
// a file leave it unchanged, and are still synced down themselves.
func TestFieldThatDoesNotFit(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for _, length := range []int{100_000, 150_000} {
		copied := downIn(t, allowing("Pod", nil, []string{"a"}), k, tenantPod(withAnnotationsFile(length)))
		valid(t, copied)
		path := copied.Spec.Volumes[0].DownwardAPI.Items[0].FieldRef.FieldPath
		if got, want := kubeletReads(t, copied, path) != "", length == 100_000; got != want {
			t.Errorf("with %d bytes of annotations, the file is written: %t, want %t", length, got, want)
		}
		if len(copied.Annotations["a"]) != length {
			t.Errorf("of %d bytes of annotations, %d are synced down", length, len(copied.Annotations["a"]))
		}
	}
}
