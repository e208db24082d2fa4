package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Keeper keeps the webhooks of CRDs in the super cluster at the gateway, whose URL
// and CA change.
type Keeper struct {
	// CRDs has those with the label names.Converted.
	CRDs client.Reader
	// Super writes them.
	Super client.Writer
	// GatewayOf returns how the super cluster reaches the gateway for a tenant; false
	// if that is not served.
	GatewayOf func(clusterKey string) (Gateway, bool)
	Log       logr.Logger

	queue workqueue.TypedRateLimitingInterface[string]
}

// Init makes the queue. It is called before all else.
func (k *Keeper) Init() {
	k.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

// Start keeps the webhooks until ctx ends.
func (k *Keeper) Start(ctx context.Context) {
	context.AfterFunc(ctx, k.queue.ShutDown)
	for {
		name, stopped := k.queue.Get()
		if stopped {
			return
		}
		if err := k.reconcile(ctx, name); err != nil && ctx.Err() == nil {
			k.Log.Error(err, "Keep the conversion webhook of a CRD", "name", name)
			k.queue.AddRateLimited(name)
		} else {
			k.queue.Forget(name)
		}
		k.queue.Done(name)
	}
}

// Handler returns what an informer calls that watches the CRDs.
func (k *Keeper) Handler() cache.ResourceEventHandler {
	add := func(obj any) {
		if crd := obj.(*resources.CRD); ClientOf(crd) != nil {
			k.queue.Add(crd.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }}
}

// Changed queues the CRDs of a tenant whose gateway may have changed.
func (k *Keeper) Changed(crds []*resources.CRD, clusterKey string) {
	for _, crd := range crds {
		if super, err := (naming.Namer{Key: clusterKey}).CRD(crd.Name); err == nil && ClientOf(crd) != nil {
			k.queue.Add(super)
		}
	}
}

func (k *Keeper) reconcile(ctx context.Context, name string) error {
	crd := &resources.CRD{}
	if err := k.CRDs.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return client.IgnoreNotFound(err)
	}
	key, config := crd.Labels[names.Converted], ClientOf(crd)
	gateway, served := k.GatewayOf(key)
	tenantName, ok := naming.Namer{Key: key}.TenantCRD(name)
	if config == nil || !served || !ok || !crd.DeletionTimestamp.IsZero() {
		return nil
	}
	hook, err := gateway.Hook(key, tenantName)
	if err != nil {
		return err
	}
	want, err := hook.Of(document.Unhook(*config))
	if err != nil || want.URL == nil || config.URL != nil && *config.URL == *want.URL && bytes.Equal(config.CABundle, want.CABundle) {
		return err
	}
	patch, err := patchOf(crd.ResourceVersion, want)
	if err != nil {
		return err
	}
	if err := k.Super.Patch(ctx, crd, patch, client.FieldOwner("vc-gateway")); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch CRD %s: %w", name, err)
	}
	return nil
}

func patchOf(version string, want document.ClientConfig) (client.Patch, error) {
	data, err := json.Marshal(map[string]any{
		metadata: map[string]any{"resourceVersion": version},
		"spec":   map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": want}}},
	})
	return client.RawPatch(types.MergePatchType, data), err
}
