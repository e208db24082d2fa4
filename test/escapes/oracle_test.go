package escapes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// oracle knows the owners of all objects of the super cluster, also of those that
// were there for a moment only.
type oracle struct {
	rivals []*rival

	mu     sync.Mutex
	owners map[string]string // by UID; the cluster key, or empty for the platform
	sealed bool              // what no request may change is as it is to stay
	wrong  []string
}

// startOracle watches all kinds of the super cluster until the cleanup.
func startOracle(ctx context.Context, rivals ...*rival) *oracle {
	GinkgoHelper()
	o := &oracle{rivals: rivals, owners: map[string]string{}}
	clients, err := metadataclient.NewForConfig(super.Config)
	Expect(err).NotTo(HaveOccurred())
	informers := metadatainformer.NewSharedInformerFactory(clients, 0)
	handled := map[schema.GroupVersionResource]cache.ResourceEventHandlerRegistration{}
	for _, kind := range kindsOfSuper() {
		handled[kind], err = informers.ForResource(kind).Informer().AddEventHandler(o.handler(kind))
		Expect(err).NotTo(HaveOccurred())
	}
	watching, cancel := context.WithCancel(context.Background())
	DeferCleanup(func() {
		cancel()
		informers.Shutdown()
	})
	informers.Start(watching.Done())
	for kind, handler := range handled {
		Eventually(func() bool {
			if handler.HasSynced() {
				return true
			}
			// A definition of an earlier spec may have been deleted meanwhile.
			_, err := clients.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
			return apierrors.IsNotFound(err)
		}).WithContext(ctx).WithTimeout(2*kit.Soon).Should(BeTrue(), kind.String())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sealed = true
	return o
}

// kindsOfSuper returns the kinds that can be watched in the super cluster.
func kindsOfSuper() []schema.GroupVersionResource {
	GinkgoHelper()
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(super.Config).ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	var kinds []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "watch") {
				kinds = append(kinds, version.WithResource(resource.Name))
			}
		}
	}
	return kinds
}

// handler learns the owners of the objects of a kind.
func (o *oracle) handler(kind schema.GroupVersionResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { o.learn(kind, object.(*metav1.PartialObjectMetadata), "created") },
		UpdateFunc: func(before, after any) {
			if before.(*metav1.PartialObjectMetadata).ResourceVersion != after.(*metav1.PartialObjectMetadata).ResourceVersion {
				o.learn(kind, after.(*metav1.PartialObjectMetadata), "changed")
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(*metav1.PartialObjectMetadata); ok {
				o.learn(kind, last, "deleted")
			}
		},
	}
}

func (o *oracle) learn(kind schema.GroupVersionResource, object *metav1.PartialObjectMetadata, happened string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner := o.ownerOf(kind, object)
	if !isShared(kind, object) {
		o.owners[string(object.UID)] = owner
	}
	if o.sealed && o.isVault(object) {
		o.wrong = append(o.wrong, fmt.Sprintf("%s %s/%s, which no request may change, was %s", kind, object.Namespace, object.Name, happened))
	}
	for _, t := range o.rivals {
		if owner != t.Key && object.Labels["treasure"] == t.treasure {
			o.wrong = append(o.wrong, fmt.Sprintf("%s has written %s %s/%s", t.Key, kind, object.Namespace, object.Name))
		}
	}
}

// ownerOf returns the cluster key of the owner of an object; empty for the
// platform.
func (o *oracle) ownerOf(kind schema.GroupVersionResource, object *metav1.PartialObjectMetadata) string {
	for _, t := range o.rivals {
		isShelved := object.Namespace == t.Key && kind.Group == names.ShelvedGroup
		if isShelved || strings.HasPrefix(kind.Group, names.ConvertedGroup(t.Key)) {
			return t.Key
		}
	}
	return object.Labels[names.Converted]
}

// isShared reports whether tenants see an object of the platform: a node, an
// offered class, or a role that each cluster has.
func isShared(kind schema.GroupVersionResource, object *metav1.PartialObjectMetadata) bool {
	return kind.Resource == "nodes" || object.Labels[names.Public] == "true" || object.Labels["kubernetes.io/bootstrapping"] == "rbac-defaults"
}

// isVault reports whether no request may change an object.
func (o *oracle) isVault(object *metav1.PartialObjectMetadata) bool {
	switch {
	case object.Namespace == "" && object.Name == "fuzz-platform", object.Namespace == "fuzz-platform":
		return true
	case object.Namespace == "" && (object.Name == "fuzz-hidden" || object.Name == "fuzz-offered"):
		return object.Labels["treasure"] == platformTreasure
	}
	return slices.ContainsFunc(o.rivals, func(t *rival) bool { return object.Namespace == t.super(untouched) })
}

// judge asserts that nothing wrong was seen, neither in the super cluster nor by
// a tenant.
func (o *oracle) judge() {
	GinkgoHelper()
	o.mu.Lock()
	defer o.mu.Unlock()
	Expect(o.wrong).To(BeEmpty())
	for _, t := range o.rivals {
		for uid, request := range t.uids() {
			if owner, known := o.owners[uid]; known {
				Expect(owner).To(Equal(t.Key), "%s was shown the UID %s by %s", t.Key, uid, request)
			}
		}
	}
}
