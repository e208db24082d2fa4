package kit

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Stored returns how many objects a converted tenant has in the super cluster,
// without Events, and their bytes in JSON. Others are kinds of the tenant's CRDs.
func Stored(ctx context.Context, super *local.SuperCluster, key string, others ...schema.GroupVersionKind) (objects, bytes int) {
	GinkgoHelper()
	add := func(gvk schema.GroupVersionKind, options ...client.ListOption) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		err := super.Client.List(ctx, list, options...)
		if meta.IsNoMatchError(err) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		for i := range list.Items {
			data, err := list.Items[i].MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			objects, bytes = objects+1, bytes+len(data)
		}
	}
	for _, gvk := range others {
		add(gvk)
	}
	tenants, err := labels.Parse(names.Converted + "=" + key)
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range kinds.All() {
		if !kind.Served() || kind.Kind == "Event" || kind.Class == kinds.Answered || kind.Class == kinds.Shown {
			continue
		}
		if kind.Stored.InRoot {
			add(kinds.Shelf.WithKind(kind.Kind), client.InNamespace(key))
			continue
		}
		gvk := kinds.Shelf.WithKind(kind.Kind)
		if !kind.IsStored() {
			mapping, err := super.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
			if meta.IsNoMatchError(err) {
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			gvk = mapping.GroupVersionKind
		}
		add(gvk, client.MatchingLabelsSelector{Selector: tenants})
	}
	return objects, bytes
}
