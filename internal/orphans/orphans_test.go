package orphans

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestWithout(t *testing.T) {
	namespace := func(name, uid string) corev1.Namespace {
		ns := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.VCName: "red", names.VCNamespace: "team"}}}
		if uid != "" {
			ns.Annotations = map[string]string{names.VCUID: uid}
		}
		return ns
	}
	existing := tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "red", UID: "2"}}
	leaving := tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "blue", UID: "3", DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"x"},
	}}
	var got []string
	for _, ns := range Without([]corev1.Namespace{
		namespace("of-the-predecessor", "1"), namespace("of-it", "2"), namespace("being-deleted", "3"), namespace("of-no-tenant", ""), namespace("another", "4"),
	}, []tenancyv1alpha1.VirtualCluster{existing, leaving}) {
		got = append(got, ns.Name)
	}
	if diff := cmp.Diff([]string{"of-the-predecessor", "another"}, got); diff != "" {
		t.Errorf("orphans (-want +got):\n%s", diff)
	}
	ns := namespace("x", "1")
	if got := Owner(&ns); got != (types.NamespacedName{Namespace: "team", Name: "red"}) {
		t.Errorf("the owner is %s", got)
	}
}
