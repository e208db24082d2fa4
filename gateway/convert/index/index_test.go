package index_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func namespace(key, tenantName string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "red-shop", Labels: map[string]string{names.Converted: key}, Annotations: map[string]string{names.Namespace: tenantName},
	}}
}

func TestIndex(t *testing.T) {
	i := index.New()
	expect := func(when, key, name string, exists, known bool) {
		t.Helper()
		tenant, ok := i.TenantName(key, name)
		if i.Exists(key, name) != exists || ok != known || ok && tenant != "shop" {
			t.Errorf("%s, Exists(%s) is %t and TenantName %q, %t", when, key, i.Exists(key, name), tenant, ok)
		}
	}
	expect("before", "red", "red-shop", false, false)
	events := i.Handler()
	events.OnAdd(namespace("red", "shop"), false)
	expect("added", "red", "red-shop", true, true)
	expect("added", "blue", "red-shop", false, false)
	terminating := namespace("red", "shop")
	terminating.DeletionTimestamp = new(metav1.Now())
	events.OnUpdate(nil, terminating)
	expect("terminating", "red", "red-shop", false, true)
	events.OnDelete(cache.DeletedFinalStateUnknown{Obj: namespace("red", "shop")})
	expect("deleted", "red", "red-shop", false, true)
	expect("deleted", "blue", "red-shop", false, false)
	events.OnAdd(namespace("blue", "shop"), false)
	expect("created by another", "red", "red-shop", false, false)
	events.OnUpdate(nil, namespace("", ""))
	expect("without labels", "blue", "red-shop", false, true)
}
