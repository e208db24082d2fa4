package chain_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/oracle"
)

// rival is a tenant that sends random requests about the same objects as others.
type rival struct {
	name   string
	client dynamic.Interface
	// owners has the tenant that has seen a UID first, and tokens the last
	// continue token of each tenant.
	owners, tokens *sync.Map
}

// TestRivals: two tenants send random requests about objects of equal names, one
// of whose names begins the other's, while the oracle checks every key.
func TestRivals(t *testing.T) {
	g := NewWithT(t)
	kv, all := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source.Run)
	watching := oracle.New(func(violation string) { t.Error(violation) })
	client := clientOf(t, all.Endpoints()[0])
	watching.Observe(client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := chain.New(ctx, chain.Options{Store: keyspace.Confine(client), Feed: source})
	g.Expect(err).NotTo(HaveOccurred())

	length := 5 * time.Second
	if os.Getenv("AT_LENGTH") != "" {
		length = 10 * time.Minute
	}
	sending, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var running sync.WaitGroup
	owners, tokens := &sync.Map{}, &sync.Map{}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n, name := range []string{"red", "red1"} {
		r := &rival{name: name, client: newRival(t, c, watching, name), owners: owners, tokens: tokens}
		for worker := range 3 {
			source := rand.New(rand.NewPCG(seed, uint64(n*10+worker)))
			running.Go(func() {
				for sending.Err() == nil {
					if err := r.act(sending, source); err != nil && sending.Err() == nil {
						t.Errorf("tenant %s: %v", name, err)
						return
					}
				}
			})
		}
	}
	running.Wait()
	t.Logf("%d accesses of requests, %d of parts of a tenant", watching.Attributed(), watching.Nameless())
	g.Expect(watching.Attributed()).To(BeNumerically(">", 100))
}

func newRival(t *testing.T, c *chain.Chain, watching *oracle.Oracle, name string) dynamic.Interface {
	t.Helper()
	g := NewWithT(t)
	spec := specOf(t, name)
	spec.Filter = func(handler http.Handler, _ *genericapiserver.Config) http.Handler {
		return watching.Attribute(name, handler)
	}
	tenant, err := c.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	client, err := dynamic.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

// rivalries are the kinds that rivals use, with what a new object needs.
func rivalries() []rivalry {
	role := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
	return []rivalry{
		{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret", nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount", nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service", map[string]any{
			"spec": map[string]any{"type": "NodePort", "ports": []any{map[string]any{"port": int64(80)}}},
		}},
		{schema.GroupVersionResource{Version: "v1", Resource: "events"}, "Event", map[string]any{
			"involvedObject": map[string]any{"namespace": metav1.NamespaceDefault},
		}},
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "Lease", nil},
		{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, "Role", nil},
		{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, "RoleBinding", map[string]any{
			"roleRef": role,
		}},
	}
}

type rivalry struct {
	resource schema.GroupVersionResource
	kind     string
	fields   map[string]any
}

// act sends one random request. Of the errors, it returns those that no
// well-behaved cluster gives.
func (r *rival) act(ctx context.Context, random *rand.Rand) error {
	kinds := rivalries()
	kind := kinds[random.IntN(len(kinds))]
	objects := r.client.Resource(kind.resource).Namespace(metav1.NamespaceDefault)
	name := string(rune('a' + random.IntN(3)))
	var found *unstructured.Unstructured
	var err error
	switch random.IntN(8) {
	case 0, 1:
		found, err = objects.Create(ctx, kind.object(name, r.name), metav1.CreateOptions{})
	case 2:
		found, err = objects.Get(ctx, name, metav1.GetOptions{})
	case 3:
		err = objects.Delete(ctx, name, metav1.DeleteOptions{})
	case 4:
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, random.IntN(9))
		found, err = objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	case 5:
		found, err = objects.Apply(ctx, name, kind.object(name, r.name), metav1.ApplyOptions{FieldManager: "rival", Force: true})
	case 6:
		return r.list(ctx, objects)
	default:
		return r.watch(ctx, objects)
	}
	if err != nil {
		return unexpected(err)
	}
	if found == nil {
		return nil
	}
	return r.own(found)
}

func (k rivalry) object(name, tenant string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, k.fields)
	object.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.kind))
	object.SetName(name)
	object.SetNamespace(metav1.NamespaceDefault)
	object.SetAnnotations(map[string]string{"of": tenant})
	return object
}

// list lists with a continue token, which may be the other tenant's.
func (r *rival) list(ctx context.Context, objects dynamic.ResourceInterface) error {
	options := metav1.ListOptions{Limit: 1}
	r.tokens.Range(func(_, token any) bool {
		options.Continue, _ = token.(string)
		return true
	})
	list, err := objects.List(ctx, options)
	if err != nil {
		return unexpected(err)
	}
	r.tokens.Store(r.name, list.GetContinue())
	for i := range list.Items {
		if err := r.own(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// watch watches for a moment.
func (r *rival) watch(ctx context.Context, objects dynamic.ResourceInterface) error {
	watch, err := objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return unexpected(err)
	}
	defer watch.Stop()
	end := time.NewTimer(20 * time.Millisecond)
	defer end.Stop()
	for {
		select {
		case event, open := <-watch.ResultChan():
			found, isObject := event.Object.(*unstructured.Unstructured)
			if !open || !isObject {
				return nil
			}
			if err := r.own(found); err != nil {
				return err
			}
		case <-end.C:
			return nil
		}
	}
}

// own returns an error if an object is another tenant's.
func (r *rival) own(found *unstructured.Unstructured) error {
	if of := found.GetAnnotations()["of"]; of != "" && of != r.name {
		return fmt.Errorf("got %s %s of tenant %s", found.GetKind(), found.GetName(), of)
	}
	if owner, _ := r.owners.LoadOrStore(found.GetUID(), r.name); owner != r.name && found.GetUID() != "" {
		return fmt.Errorf("%s %s has a UID of tenant %s", found.GetKind(), found.GetName(), owner)
	}
	return nil
}

// unexpected returns the errors that rivals do not cause.
func unexpected(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsResourceExpired(err) {
		return nil
	}
	return err
}
