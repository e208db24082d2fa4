package patch

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// examples returns the patches of the admins' guide and of the sample.
func examples(t *testing.T) map[string]*Set {
	t.Helper()
	const guide, sample = "../../docs/admins/patches.md", "../../config/samples/tenancy_v1alpha1_virtualcluster_sync.yaml"
	inGuide := patchesOf(t, yamlBlocks(t, guide)...)
	if len(inGuide) != 3 {
		t.Fatalf("%d patches found in %s", len(inGuide), guide)
	}
	inSample := patchesOf(t, read(t, sample))
	return map[string]*Set{guide: Compile(inGuide), sample: Compile(inSample)}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// yamlBlocks returns the blocks of YAML in a document that are VirtualClusters,
// or parts of one.
func yamlBlocks(t *testing.T, file string) []string {
	t.Helper()
	var blocks []string
	for i, part := range strings.Split(read(t, file), "```") {
		text, isYAML := strings.CutPrefix(part, "yaml\n")
		if isYAML && i%2 == 1 && (!strings.Contains(text, "apiVersion: ") || strings.Contains(text, "kind: VirtualCluster")) {
			blocks = append(blocks, text)
		}
	}
	return blocks
}

// patchesOf returns the patches of VirtualClusters.
func patchesOf(t *testing.T, manifests ...string) []tenancyv1alpha1.SyncPatch {
	t.Helper()
	var patches []tenancyv1alpha1.SyncPatch
	for _, manifest := range manifests {
		vc := &tenancyv1alpha1.VirtualCluster{}
		if err := yaml.UnmarshalStrict([]byte(manifest), vc); err != nil {
			t.Fatal(err)
		}
		if vc.Spec.Sync != nil {
			patches = append(patches, vc.Spec.Sync.Patches...)
		}
	}
	return patches
}

// TestExamples checks that documented patches do what the document says.
func TestExamples(t *testing.T) {
	tolerations := []corev1.Toleration{{Key: "example.com/sandbox", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	for file, patches := range examples(t) {
		t.Run(file, func(t *testing.T) {
			for name, tc := range map[string]struct {
				namespace string
				labels    map[string]string
				pool      string
				sandboxed bool
			}{
				"NoLabels": {"shop", nil, "blue", true},
				"Label":    {"shop", map[string]string{"example.com/pool": "large"}, "large", true},
				"Trusted":  {"trusted", map[string]string{"app": "web"}, "blue", false},
			} {
				t.Run(name, func(t *testing.T) {
					object, self := pod(), tenantPod()
					self.Namespace, self.Labels = tc.namespace, tc.labels
					if err := patches.Apply(t.Context(), "Pod", object, self, blue); err != nil {
						t.Fatal(err)
					}
					want := pod()
					want.Spec.NodeSelector = map[string]string{"example.com/pool": tc.pool}
					if tc.sandboxed {
						want.Spec.RuntimeClassName, want.Spec.Tolerations = new("gvisor"), tolerations
					}
					if diff := cmp.Diff(want, object); diff != "" {
						t.Error(diff)
					}
				})
			}
			for class, want := range map[string]string{"fast": "ceph-ssd", "cheap": "ceph-hdd", "other": "other", "": ""} {
				t.Run("Class/"+class, func(t *testing.T) {
					object := claim()
					object.Spec.StorageClassName = nil
					if class != "" {
						object.Spec.StorageClassName = &class
					}
					if err := patches.Apply(t.Context(), "PersistentVolumeClaim", object, claim(), blue); err != nil {
						t.Fatal(err)
					}
					if got := object.Spec.StorageClassName; (want == "") != (got == nil) || got != nil && *got != want {
						t.Errorf("got %v, want %q", got, want)
					}
				})
			}
		})
	}
}

func TestSampleOfCustomResource(t *testing.T) {
	for file, patches := range examples(t) {
		if !strings.Contains(file, "samples") {
			continue
		}
		object := certificate()
		if err := patches.Apply(t.Context(), certificates, object, certificate(), blue); err != nil {
			t.Fatal(err)
		}
		issuer, _, err := unstructured.NestedStringMap(object.Object, "spec", "issuerRef")
		if want := map[string]string{"kind": "ClusterIssuer", "name": "shared"}; err != nil || !cmp.Equal(issuer, want) {
			t.Errorf("got %v, %v", issuer, err)
		}
	}
}
