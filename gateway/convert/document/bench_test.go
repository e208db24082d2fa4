package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// benchPod is a pod as an apiserver returns it, with its owner, and with those who
// manage its fields.
func benchPod(b *testing.B) []byte {
	container := corev1.Container{
		Name: "web", Image: "registry.example.com/shop/web:1.2.3", Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/web"}},
	}
	managed := func(fields string) *metav1.FieldsV1 {
		return metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:` + names.Converted + `":{}}},` + fields + `}`)
	}
	var containers, status []string
	for i := range 8 {
		containers = append(containers, fmt.Sprintf(`"k:{\"name\":\"web-%d\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{}}`, i))
		status = append(status, fmt.Sprintf(`"k:{\"type\":\"Ready-%d\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{}}`, i))
	}
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	data, err := json.Marshal(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: key + "-shop", UID: "6f1c2a34", Labels: map[string]string{"app": "web", names.Converted: key},
			Annotations:     map[string]string{names.Namespace: "shop"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1-2"}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", APIVersion: "v1", FieldsV1: managed(`"f:spec":{"f:containers":{` + strings.Join(containers, ",") + `}}`)},
				{Manager: "kubelet", APIVersion: "v1", FieldsV1: managed(`"f:status":{"f:conditions":{` + strings.Join(status, ",") + `}}`)},
			},
		},
		Spec:   corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{container, container}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{condition, condition, condition, condition}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkPod converts the text of a pod.
func BenchmarkPod(b *testing.B) {
	data := benchPod(b)
	of := response(kinds.Find("", "pods"))
	b.Run("spliced", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := of.Document(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tree", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			object, err := document.ParseTrusted(data)
			if err != nil {
				b.Fatal(err)
			}
			if err := of.Up(object); err != nil {
				b.Fatal(err)
			}
			if _, err := document.Write(object); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkList converts a list of 100 pods, as a response.
func BenchmarkList(b *testing.B) {
	items := bytes.Join(slices.Repeat([][]byte{benchPod(b)}, 100), []byte(","))
	list := append(append([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`), items...), "]}"...)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	of := listResponse(kinds.Find("", "pods"))
	for b.Loop() {
		if err := of.Stream(io.Discard, bytes.NewReader(list)); err != nil {
			b.Fatal(err)
		}
	}
}
