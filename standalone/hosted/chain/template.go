package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// templatePrefix begins the name of the tenant whose records are the template:
// not a name that a control plane can have. The name is random, since several
// processes may use one etcd.
const templatePrefix = ".template-"

// template has the records of a new cluster: its namespaces with what each
// namespace has, RBAC roles, priority classes, flow schemas and APIServices.
// Upstream's hooks and controllers take seconds to create them; copies take
// milliseconds.
type template struct{ records []record }

// record is one object, by its key below the prefix of its tenant.
type record struct {
	key    string
	object runtime.Object
}

// newTemplate has upstream's hooks create the objects of a cluster, reads them,
// and deletes them again.
func newTemplate(ctx context.Context, c *Chain) (made *template, err error) {
	name := templatePrefix + string(uuid.NewUUID())
	t, err := c.Add(Spec{Name: name})
	if err != nil {
		return nil, err
	}
	defer c.Remove(t)
	ctx = keyspace.NewContext(ctx, name)
	defer func() {
		_, deleteErr := c.opts.Store.Delete(context.WithoutCancel(ctx), "/", clientv3.WithPrefix())
		err = errors.Join(err, deleteErr)
	}()
	if err := runHooks(ctx, t); err != nil {
		return nil, err
	}
	if err := createDefaults(ctx, t.client); err != nil {
		return nil, err
	}
	if err := c.registerAPIs(ctx, t); err != nil {
		return nil, err
	}
	return readTemplate(ctx, c)
}

func readTemplate(ctx context.Context, c *Chain) (*template, error) {
	response, err := c.opts.Store.KV.Get(ctx, "/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the objects of a new cluster: %w", err)
	}
	made := &template{records: make([]record, 0, len(response.Kvs))}
	for _, kv := range response.Kvs {
		object, err := decodeRecord(string(kv.Key), kv.Value)
		if err != nil {
			return nil, fmt.Errorf("decode %s of a new cluster: %w", kv.Key, err)
		}
		made.records = append(made.records, record{key: string(kv.Key), object: object})
	}
	return made, nil
}

// decodeRecord decodes the object of a key below the prefix of its tenant.
func decodeRecord(key string, value []byte) (runtime.Object, error) {
	codecs := legacyscheme.Codecs
	if strings.HasPrefix(key, apiServicesKey) {
		codecs = aggregatorscheme.Codecs
	}
	object, kind, err := codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return object, nil
}

// runHooks creates the objects that every cluster has, and updates those of an
// earlier version of Kubernetes.
func runHooks(ctx context.Context, t *Tenant) error {
	ctx, cancel := context.WithCancel(ctx) // some hooks continue in the background
	defer cancel()
	if err := ensureNamespaces(ctx, t.client); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(t.client, 0)
	hooks, err := HooksOf(
		rbacrest.RESTStorageProvider{}, schedulingrest.RESTStorageProvider{}, flowcontrolrest.RESTStorageProvider{InformerFactory: factory})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	return RunHooks(ctx, t.Config(), hooks)
}

// HooksOf returns the hooks of upstream's providers by their names.
func HooksOf(providers ...genericapiserver.PostStartHookProvider) (map[string]genericapiserver.PostStartHookFunc, error) {
	hooks := make(map[string]genericapiserver.PostStartHookFunc, len(providers))
	for _, provider := range providers {
		name, hook, err := provider.PostStartHook()
		if err != nil {
			return nil, fmt.Errorf("find the bootstrap hook %s: %w", name, err)
		}
		hooks[name] = hook
	}
	return hooks, nil
}

// RunHooks runs hooks of upstream at the same time, and waits for all.
func RunHooks(ctx context.Context, loopback *rest.Config, hooks map[string]genericapiserver.PostStartHookFunc) error {
	var running sync.WaitGroup
	failures := make(chan error, len(hooks))
	for name, hook := range hooks {
		running.Go(func() {
			defer views.Recovered(func(panicked error) { failures <- fmt.Errorf("run the bootstrap hook %s: %w", name, panicked) })
			if err := hook(genericapiserver.PostStartHookContext{LoopbackClientConfig: loopback, Context: ctx}); err != nil {
				failures <- fmt.Errorf("run the bootstrap hook %s: %w", name, err)
			}
		})
	}
	running.Wait()
	close(failures)
	var err error
	for each := range failures {
		err = errors.Join(err, each)
	}
	return err
}

func ensureNamespaces(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		// A write would create the admission of an idle tenant.
		_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("ensure namespace %s: %w", name, err)
		}
	}
	return nil
}

// copies returns the writes that create the objects in another tenant, with an
// authority in PEM. Each copy has a UID of its own, and was created now.
func (t *template) copies(authority []byte) ([]clientv3.Op, error) {
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	now := metav1.Now()
	ops := make([]clientv3.Op, 0, len(t.records))
	for _, each := range t.records {
		object := each.object.DeepCopyObject()
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", each.key, err)
		}
		accessor.SetUID(uuid.NewUUID())
		accessor.SetCreationTimestamp(now)
		fields := accessor.GetManagedFields()
		for i := range fields {
			fields[i].Time = &now
		}
		accessor.SetManagedFields(fields)
		setAuthority(object, authority)
		var encoded bytes.Buffer
		if err := serializer.Encode(object, &encoded); err != nil {
			return nil, fmt.Errorf("encode %s: %w", each.key, err)
		}
		ops = append(ops, clientv3.OpPut(each.key, encoded.String()))
	}
	return ops, nil
}
