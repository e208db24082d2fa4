package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Differences lists the differences between a tenant and the super cluster, one
// a line: missing, duplicate and orphaned copies, specs and statuses that do
// not match. Changes that are still being synced are differences as well.
func (s *SuperCluster) Differences(ctx context.Context, t *Tenant) ([]string, error) {
	c := &comparison{who: translate.NewTenant(t.VC, ""), references: map[reference]bool{}}
	kinds := downKinds()
	declared, copies := make([][]client.Object, len(kinds)), make([][]client.Object, len(kinds))
	for i, k := range kinds {
		var err error
		// Copies are listed first: an object that the tenant deletes in between
		// then looks like an orphaned copy, which is temporary.
		if copies[i], err = list(ctx, s.Client, k.list); err != nil {
			return nil, fmt.Errorf("list the super cluster's %s objects: %w", k.name, err)
		}
		if declared[i], err = list(ctx, t.Client, k.list); err != nil {
			return nil, fmt.Errorf("list the tenant's %s objects: %w", k.name, err)
		}
		c.refer(k, declared[i])
	}
	named := func(name string) int { return slices.IndexFunc(kinds, func(k downKind) bool { return k.name == name }) }
	for i, k := range kinds {
		c.compare(k, declared[i], copies[i])
	}
	c.compareTokens(declared[named("Pod")], copies[named("Secret")])
	if err := c.compareNodes(ctx, t.Client); err != nil {
		return nil, err
	}
	slices.Sort(c.found)
	return c.found, nil
}

// list lists all objects of the kind of an empty list.
func list(ctx context.Context, c client.Client, empty client.ObjectList) ([]client.Object, error) {
	all := empty.DeepCopyObject().(client.ObjectList)
	if err := c.List(ctx, all); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(all, func(obj runtime.Object) error {
		objects = append(objects, obj.(client.Object))
		return nil
	})
	return objects, err
}

// comparison collects the differences between a tenant and the super cluster.
type comparison struct {
	who        translate.Tenant
	references map[reference]bool
	found      []string
}

// reference identifies an object of the tenant to which another one refers.
type reference struct{ kind, namespace, name string }

// refer records the references of objects.
func (c *comparison) refer(k downKind, objects []client.Object) {
	if k.references == nil {
		return
	}
	for _, obj := range objects {
		for _, to := range k.references(obj) {
			c.references[reference{to.kind, obj.GetNamespace(), to.name}] = true
		}
	}
}

// differf records a difference.
func (c *comparison) differf(k downKind, obj client.Object, format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("%s %s: ", k.name, client.ObjectKeyFromObject(obj))+fmt.Sprintf(format, args...))
}

// compare compares the tenant's objects of one kind with all objects of that
// kind in the super cluster.
func (c *comparison) compare(k downKind, declared, all []client.Object) {
	copies := map[types.UID][]client.Object{}
	for _, obj := range all {
		if c.isCopy(k, obj) {
			uid := translate.OriginOf(obj).UID
			copies[uid] = append(copies[uid], obj)
		}
	}
	for _, obj := range declared {
		if k.own != nil && k.own(obj) {
			continue
		}
		of := copies[obj.GetUID()]
		delete(copies, obj.GetUID())
		c.comparePair(k, obj, of)
	}
	for _, left := range copies {
		for _, obj := range left {
			c.differf(k, obj, "is the copy of an object that the tenant has not: UID %q%s", translate.OriginOf(obj).UID, ending(obj))
		}
	}
}

// ending describes the deletion of an object: when it was requested and the
// grace period.
func ending(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf(", deleted at %s with a grace period of %d seconds", obj.GetDeletionTimestamp().UTC().Format(time.TimeOnly),
		ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 0))
}

// isCopy reports whether an object of the super cluster claims to be a copy of
// this tenant's. The root namespace and the objects in it belong to vc-manager.
func (c *comparison) isCopy(k downKind, obj client.Object) bool {
	root := obj.GetNamespace() == c.who.Key || k.name == "Namespace" && obj.GetName() == c.who.Key
	if root || k.own != nil && k.own(obj) {
		return false
	}
	labels := obj.GetLabels()
	return translate.OriginOf(obj).Cluster == c.who.Key ||
		labels[names.VCName] == c.who.Name && labels[names.VCNamespace] == c.who.Namespace
}

// comparePair compares one of the tenant's objects with its copies. There
// should be at most one.
func (c *comparison) comparePair(k downKind, obj client.Object, copies []client.Object) {
	wanted := c.wanted(k, obj)
	switch {
	case obj.GetDeletionTimestamp() != nil:
		c.differf(k, obj, "is still being deleted in the tenant")
	case !wanted && len(copies) > 0:
		c.differf(k, obj, "has a copy that nothing asks for")
	case !wanted:
	case len(copies) != 1:
		c.differf(k, obj, "has %d copies", len(copies))
	default:
		c.compareCopy(k, obj, copies[0])
	}
}

// wanted reports whether an object of the tenant should have a copy.
func (c *comparison) wanted(k downKind, obj client.Object) bool {
	mode := c.who.Mode(k.name)
	if mode == "" && k.onDemand {
		mode = tenancyv1alpha1.SyncReferenced
	}
	switch mode {
	case tenancyv1alpha1.SyncOff:
		return false
	case tenancyv1alpha1.SyncReferenced:
		return c.references[reference{k.name, obj.GetNamespace(), obj.GetName()}]
	case tenancyv1alpha1.SyncAll:
	}
	return true
}

// compareCopy compares an object with its only copy.
func (c *comparison) compareCopy(k downKind, obj, copied client.Object) {
	if copied.GetDeletionTimestamp() != nil {
		c.differf(k, obj, "has a copy that is still being deleted")
	}
	want := k.superKey(c.who, client.ObjectKeyFromObject(obj))
	if have := client.ObjectKeyFromObject(copied); have != want {
		c.differf(k, obj, "has its copy at %s, not at %s", have, want)
	}
	down := c.who.Down(k.name, obj, want)
	c.compareMaps(k, obj, "label", down.Labels, copied.GetLabels())
	c.compareMaps(k, obj, "annotation", down.Annotations, copied.GetAnnotations())
	if k.facts == nil {
		return
	}
	if k.selecting != nil {
		obj = k.selecting(c.who, obj)
	}
	here, there := k.facts(obj), k.facts(copied)
	all := maps.Clone(there)
	maps.Copy(all, here)
	for _, fact := range slices.Sorted(maps.Keys(all)) {
		if !equality.Semantic.DeepEqual(here[fact], there[fact]) {
			c.differf(k, obj, "%s is %v in the tenant and %v in the super cluster", fact, here[fact], there[fact])
		}
	}
}

// compareMaps compares the labels or annotations that are synced down. The
// super cluster may add its own.
func (c *comparison) compareMaps(k downKind, obj client.Object, what string, want, have map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := have[key]; !ok || value != want[key] {
			c.differf(k, obj, "%s %s should be %q in the super cluster and is %q", what, key, want[key], value)
		}
	}
}
