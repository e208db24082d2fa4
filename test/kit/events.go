package kit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// Rejections returns a function for Eventually that reads the messages of the
// events that tell a tenant why an object is not synced down.
func Rejections(ctx context.Context, t *local.Tenant, about client.Object) func() ([]string, error) {
	return Events(ctx, t, about, "SyncRejected")
}

// Events returns a function for Eventually that reads the messages of a
// tenant's events about an object, of one reason.
func Events(ctx context.Context, t *local.Tenant, about client.Object, reason string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &corev1.EventList{}
		if err := t.Client.List(ctx, list); err != nil {
			return nil, err
		}
		var messages []string
		for _, e := range list.Items {
			if e.Reason == reason && e.InvolvedObject.UID == about.GetUID() {
				messages = append(messages, e.Message)
			}
		}
		return messages, nil
	}
}
