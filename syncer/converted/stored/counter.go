package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Counter counts what converted tenants store: the kinds of the gateway's table,
// and the custom resources of their CRDs.
type Counter struct {
	*Usage

	client rest.Interface
	native []*source
	// running are all sources that count.
	running sync.WaitGroup

	mu     sync.Mutex
	custom map[schema.GroupResource]*counted
}

// counted is a source of custom resources.
type counted struct {
	source

	definition types.UID
	version    string
	since      time.Time
	stop       context.CancelFunc
	// ended is closed when it counts no more. If it is followed, the next one for the
	// CRD has what it has counted.
	ended      chan struct{}
	isFollowed bool
}

// Definitions is the resource of CRDs.
func Definitions() schema.GroupResource { return apiextensionsv1.Resource("customresourcedefinitions") }

// New returns a counter that reads the super cluster with a configuration. It
// reads custom resources as the tenants' service accounts.
func New(config *rest.Config, mapper meta.RESTMapper) (*Counter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.NegotiatedSerializer = -1, scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client that counts objects of converted tenants: %w", err)
	}
	c := &Counter{Usage: NewUsage(), client: client, custom: map[schema.GroupResource]*counted{}}
	for _, kind := range kinds.All() {
		one, err := c.sourceOf(mapper, kind)
		if meta.IsNoMatchError(err) {
			continue // the super cluster does not serve it
		}
		if err != nil {
			return nil, err
		}
		if one != nil {
			c.native = append(c.native, one)
		}
	}
	return c, nil
}

// sourceOf returns what counts the objects of a kind; nil if tenants have none.
func (c *Counter) sourceOf(mapper meta.RESTMapper, kind kinds.Kind) (*source, error) {
	switch {
	case !kind.Served(), kind.Class == kinds.Answered, kind.Class == kinds.Shown:
		return nil, nil
	case kind.Group == "events.k8s.io":
		return nil, nil // they are those of the other group
	case kind.IsStored():
		resource := kind.StoredAs("").WithResource(kind.Resource)
		return &source{client: c.client, resource: resource, tenantOf: ofNamespace, usage: c.Usage}, nil
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	if err != nil {
		return nil, err
	}
	return &source{client: c.client, resource: mapping.Resource, selector: names.Converted, tenantOf: ofLabel, usage: c.Usage}, nil
}

func ofLabel(o *object) string { return o.Labels[names.Converted] }

// ofNamespace returns the tenant of a shelved object: the name of the root
// namespace, where objects have no label, is its cluster key.
func ofNamespace(o *object) string {
	if key := ofLabel(o); key != "" {
		return key
	}
	return o.Namespace
}

// Start counts until ctx is done.
func (c *Counter) Start(ctx context.Context) error {
	defer c.running.Wait()
	for _, each := range c.native {
		if each.resource.GroupResource() == Definitions() {
			each.changed = func(o *object) { c.follow(ctx, o) }
			each.deleted = c.forget
		}
		c.running.Go(func() {
			each.run(ctx)
			each.forget()
		})
	}
	return nil
}

// follow counts the custom resources of a CRD.
func (c *Counter) follow(ctx context.Context, o *object) {
	spec := apiextensionsv1.CustomResourceDefinitionSpec{}
	if err := json.Unmarshal(o.spec, &spec); err != nil {
		log.FromContext(ctx).Error(err, "Cannot read a CRD of a converted tenant", "name", o.Name)
		return
	}
	resource, version := schema.GroupResource{Group: spec.Group, Resource: spec.Names.Plural}, versionOf(spec)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.custom[resource]
	if version == "" || before != nil && before.version == version && before.definition == o.UID {
		return
	}
	key := ofLabel(o)
	next := &counted{definition: o.UID, version: version, since: time.Now(), ended: make(chan struct{}), source: source{
		client: c.client, resource: resource.WithVersion(version), usage: c.Usage, tenantOf: func(*object) string { return key },
		as: serviceaccount.MakeUsername(key, names.ConvertedAccount),
	}}
	ctx, next.stop = context.WithCancel(ctx)
	c.custom[resource] = next
	if before != nil {
		before.isFollowed = before.definition == next.definition
		before.stop()
	}
	c.running.Go(func() { next.count(ctx, before) })
}

// count counts until ctx is done. The amounts of the source before it, of another
// version of the same CRD, count until this one has listed the objects: that may
// take a conversion webhook, which may fail.
func (n *counted) count(ctx context.Context, before *counted) {
	defer close(n.ended)
	if before != nil {
		<-before.ended
		if before.isFollowed {
			n.known = before.known
		}
	}
	n.run(ctx)
	if !n.isFollowed {
		n.forget()
	}
}

// versionOf returns a version that is served; the one that is stored if that is.
func versionOf(spec apiextensionsv1.CustomResourceDefinitionSpec) string {
	served := ""
	for _, version := range spec.Versions {
		if version.Served && (served == "" || version.Storage) {
			served = version.Name
		}
	}
	return served
}

// forget ends the count of the custom resources of a CRD.
func (c *Counter) forget(definition types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for resource, each := range c.custom {
		if each.definition == definition {
			each.stop()
			delete(c.custom, resource)
		}
	}
}

// errNotCounted is why a write has to wait.
var errNotCounted = errors.New("the objects of the cluster are not counted yet: try again")

// Counts returns an error unless the objects of a resource are counted, and those
// of all kinds of Kubernetes. It takes a moment until those of a CRD are: what is
// allowed meanwhile counts as well.
func (c *Counter) Counts(resource schema.GroupResource) error {
	if err := c.counts(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if each := c.custom[resource]; each != nil && !each.synced.Load() && time.Since(each.since) > staleAfter/2 {
		return errNotCounted
	}
	return nil
}

// counts returns an error unless the objects of all kinds of Kubernetes are
// counted.
func (c *Counter) counts() error {
	for _, each := range c.native {
		if !each.synced.Load() {
			return errNotCounted
		}
	}
	return nil
}
