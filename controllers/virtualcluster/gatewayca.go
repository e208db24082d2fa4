package virtualcluster

import (
	"bytes"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// gatewayCAInterval is how often the CA of the gateway is read: the kubelet writes
// a new one into the file without an event.
const gatewayCAInterval = 5 * time.Second

// followGatewayCA enqueues all VirtualClusters when the CA of the gateway changes,
// which is in their kubeconfigs and in the namespaces of converted tenants.
func (r *Reconciler) followGatewayCA(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	known, _, err := r.Gateway.CA()
	if err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		ca, exists, err := r.Gateway.CA()
		if err == nil && exists && !bytes.Equal(ca, known) {
			if err = r.enqueueAll(ctx, queue); err == nil {
				known = ca
			}
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot follow the CA of the gateway")
		}
	}, gatewayCAInterval)
	return nil
}

func (r *Reconciler) enqueueAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	var all tenancyv1alpha1.VirtualClusterList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return nil
}
