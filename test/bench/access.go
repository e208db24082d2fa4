package bench

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// access has the credentials of the syncer and of the client that scrapes its
// metrics.
type access struct {
	// kubeconfig is the path of the syncer's kubeconfig.
	kubeconfig string
	// token may read metrics.
	token string
}

// grant installs the shipped roles of the syncer and a service account that may
// read metrics.
func (w *world) grant(ctx context.Context) error {
	config, err := w.super.SyncerConfig(ctx)
	if err != nil {
		return fmt.Errorf("grant the syncer its permissions: %w", err)
	}
	w.access.kubeconfig = filepath.Join(w.dir, "syncer.kubeconfig")
	if err := writeKubeconfig(w.access.kubeconfig, config); err != nil {
		return fmt.Errorf("write the syncer's kubeconfig: %w", err)
	}
	for _, obj := range w.made() {
		if err := w.super.Client.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create the reader of metrics: %w", err)
		}
	}
	reader, err := w.super.AccountConfig(ctx, account())
	if err != nil {
		return err
	}
	w.access.token = reader.BearerToken
	return nil
}

// account returns the service account that reads metrics.
func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: mine}}
}

// made lists the objects that the program creates in the super cluster, apart
// from tenants and pods.
func (w *world) made() []client.Object {
	who := account()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: mine},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	return []client.Object{who, role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: mine},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: who.Namespace, Name: who.Name}},
	}}
}
