package hosted

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// awaitUsable waits for the objects that controllers create in a new cluster
// and that every pod needs.
func (c *ControlPlane) awaitUsable(ctx context.Context, client kubernetes.Interface) error {
	for {
		err := missing(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(probeInterval):
		}
	}
}

func missing(ctx context.Context, client kubernetes.Interface) error {
	core := client.CoreV1()
	if _, err := core.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("the default service account: %w", err)
	}
	if _, err := core.ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("the CA bundle: %w", err)
	}
	return nil
}
