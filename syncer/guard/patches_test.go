package guard

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestPatchNamesTheObjectByItsUID(t *testing.T) {
	was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "web-uid", Labels: map[string]string{"a": "1"},
	}}
	tests := map[string]struct {
		change func(*corev1.Pod)
		patch  client.Patch
		want   string
	}{
		"no change": {
			func(*corev1.Pod) {}, client.MergeFrom(was), `{"metadata":{"uid":"web-uid"}}`,
		},
		"a change outside of the metadata": {
			func(p *corev1.Pod) { p.Spec.Hostname = "web" }, client.MergeFrom(was),
			`{"metadata":{"uid":"web-uid"},"spec":{"hostname":"web"}}`,
		},
		"a change of the metadata is kept": {
			func(p *corev1.Pod) { p.Labels = map[string]string{"b": "2"} }, client.MergeFrom(was),
			`{"metadata":{"labels":{"a":null,"b":"2"},"uid":"web-uid"}}`,
		},
		"metadata that is removed": {
			func(p *corev1.Pod) { p.Labels = nil }, client.MergeFrom(was),
			`{"metadata":{"labels":null,"uid":"web-uid"}}`,
		},
		"the UID is not changed": {
			func(p *corev1.Pod) { p.UID = "another" }, client.MergeFrom(was), `{"metadata":{"uid":"web-uid"}}`,
		},
		"large numbers keep every digit": {
			func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{TolerationSeconds: new(int64(9223372036854775807))}}
				p.Spec.Priority = new(int32(-2147483648))
			}, client.MergeFrom(was),
			`{"metadata":{"uid":"web-uid"},"spec":{"priority":-2147483648,` +
				`"tolerations":[{"tolerationSeconds":9223372036854775807}]}}`,
		},
		"a strategic patch": {
			func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}, client.StrategicMergeFrom(was),
			`{"metadata":{"uid":"web-uid"},` +
				`"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"status":"True","type":"Ready"}]}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now := was.DeepCopy()
			tt.change(now)
			patch := SameObject(was, tt.patch)
			got, err := patch.Data(now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if patch.Type() != tt.patch.Type() {
				t.Errorf("the type of the patch is %s, want %s", patch.Type(), tt.patch.Type())
			}
		})
	}
}

func TestPatchThatCannotBeMade(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		patch client.Patch
		want  error
	}{
		"the error of the patch is passed on":   {rawPatch{err: broken}, broken},
		"invalid JSON is an error":              {rawPatch{data: "<xml/>"}, nil},
		"JSON other than an object is an error": {rawPatch{data: `[1]`}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data, err := SameObject(kindstest.Version("1"), tt.patch).Data(kindstest.Version("1"))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("the patch is %q with error %v, want error %v", data, err, tt.want)
			}
		})
	}
}

// rawPatch is a patch with this data, or this error.
type rawPatch struct {
	data string
	err  error
}

func (rawPatch) Type() types.PatchType                { return types.MergePatchType }
func (p rawPatch) Data(client.Object) ([]byte, error) { return []byte(p.data), p.err }
