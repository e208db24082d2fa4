package vnagent

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestFind(t *testing.T) {
	red := tenant{key: "tenants-c0ffee-red", name: "red", uid: "uid-of-red"}
	asked := target{call: callExec, namespace: "shop", pod: "web", container: "app"}
	type copies struct {
		namespace *corev1.Namespace
		pod       *corev1.Pod
		asked     *target
	}
	for name, tc := range map[string]struct {
		change func(*copies)
		found  bool
	}{
		"there":                       {func(*copies) {}, true},
		"by its UID":                  {func(c *copies) { c.asked.uid = "uid-of-web" }, true},
		"another UID":                 {func(c *copies) { c.asked.uid = "uid-of-copy" }, false},
		"gone":                        {func(c *copies) { c.pod.Name = "web-1" }, false},
		"its namespace is gone":       {func(c *copies) { c.namespace.Name = "tenants-c0ffee-red-other" }, false},
		"the namespace of another":    {func(c *copies) { c.namespace.Annotations[names.VCUID] = "uid-of-blue" }, false},
		"the namespace of no tenant":  {func(c *copies) { c.namespace.Annotations = nil }, false},
		"a pod of the super cluster":  {func(c *copies) { c.pod.Annotations = nil }, false},
		"a pod of another":            {func(c *copies) { c.pod.Annotations[names.Cluster] = "tenants-decade-blue" }, false},
		"a pod of another namespace":  {func(c *copies) { c.pod.Annotations[names.Namespace] = "other" }, false},
		"a tenant that has no UID":    {func(c *copies) { c.namespace.Annotations[names.VCUID] = "" }, false},
		"in a namespace like another": {func(c *copies) { c.asked.namespace = "sho" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := copies{
				namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: "tenants-c0ffee-red-shop", Annotations: map[string]string{names.VCUID: "uid-of-red"},
				}},
				pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "tenants-c0ffee-red-shop", Name: "web", UID: "uid-of-copy",
					Annotations: map[string]string{names.Cluster: red.key, names.Namespace: "shop", names.UID: "uid-of-web"},
				}},
				asked: new(asked),
			}
			tc.change(&c)
			super := pods{super: fake.NewClientBuilder().WithObjects(c.namespace, c.pod).Build()}
			got, err := super.find(t.Context(), red, *c.asked)
			if tc.found {
				if want := (types.NamespacedName{Namespace: "tenants-c0ffee-red-shop", Name: "web"}); err != nil || got != want {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			r, ok := errors.AsType[*refusal](err)
			if !ok || r.code != http.StatusNotFound || r.message != `pod "web" does not exist` {
				t.Errorf("got %v", err)
			}
		})
	}
}
