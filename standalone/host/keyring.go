package host

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/secrets"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const (
	// freshKeys is how long keys are used without another request: every
	// connection to a control plane that sleeps needs them, also those without
	// credentials. recentKeys is of how many control planes at most.
	freshKeys  = 5 * time.Second
	recentKeys = 512
)

// keyring has the keys of each control plane in a Secret of its root namespace.
type keyring struct {
	client client.Client
	live   client.Reader
	// recent has Secrets by the name of the control plane.
	recent *cache.LRUExpireCache
}

func newKeyring(writes client.Client, live client.Reader) *keyring {
	return &keyring{client: writes, live: live, recent: cache.NewLRUExpireCache(recentKeys)}
}

var _ hosted.Keyring = (*keyring)(nil)

// Open implements hosted.Keyring.
func (k *keyring) Open(ctx context.Context, controlPlane string) (hosted.Keys, error) {
	if recent, ok := k.recent.Get(controlPlane); ok {
		secret, _ := recent.(*corev1.Secret)
		return &keys{of: k, secret: secret.DeepCopy()}, nil
	}
	secret := &corev1.Secret{}
	at := types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneKeys}
	switch err := k.live.Get(ctx, at, secret); {
	case apierrors.IsNotFound(err):
		secret.ObjectMeta = metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name, Annotations: map[string]string{names.Cluster: controlPlane},
			// Without its keys, the data of the control plane is of no use.
			Finalizers: []string{tenancyv1alpha1.HostedControlPlaneFinalizer},
		}
	case err != nil:
		return nil, fmt.Errorf("get the keys of control plane %s: %w", controlPlane, secrets.WithoutData(err))
	default:
		k.recent.Add(controlPlane, secret.DeepCopy(), freshKeys)
	}
	return &keys{of: k, secret: secret}, nil
}

// Delete implements hosted.Keyring.
func (k *keyring) Delete(ctx context.Context, controlPlane string) error {
	k.recent.Remove(controlPlane)
	secret := &corev1.Secret{}
	err := k.live.Get(ctx, types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneKeys}, secret)
	if err == nil && controllerutil.RemoveFinalizer(secret, tenancyv1alpha1.HostedControlPlaneFinalizer) {
		err = k.client.Update(ctx, secret, client.FieldOwner(name))
	}
	if err == nil {
		err = k.client.Delete(ctx, secret)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the keys of control plane %s: %w", controlPlane, secrets.WithoutData(err))
	}
	return nil
}

// keys are the keys of one control plane, as they were read.
type keys struct {
	of      *keyring
	secret  *corev1.Secret
	changed bool
}

// Read implements hosted.Keys.
func (k *keys) Read(file string) ([]byte, error) {
	if data, ok := k.secret.Data[file]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// Write implements hosted.Keys.
func (k *keys) Write(file string, data []byte) error {
	if k.secret.Data == nil {
		k.secret.Data = map[string][]byte{}
	}
	if have, ok := k.secret.Data[file]; !ok || !bytes.Equal(have, data) {
		k.secret.Data[file], k.changed = data, true
	}
	return nil
}

// Commit implements hosted.Keys.
func (k *keys) Commit(ctx context.Context) error {
	if !k.changed {
		return nil
	}
	k.of.recent.Remove(k.secret.Namespace)
	var err error
	if k.secret.ResourceVersion == "" {
		err = k.of.client.Create(ctx, k.secret, client.FieldOwner(name))
	} else {
		err = k.of.client.Update(ctx, k.secret, client.FieldOwner(name))
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && k.secret.ResourceVersion != "":
		return hosted.ErrKeysChanged
	case err != nil:
		return fmt.Errorf("write the keys of control plane %s: %w", k.secret.Namespace, secrets.WithoutData(err))
	}
	k.changed = false
	return nil
}

// Locate implements hosted.Keys.
func (k *keys) Locate(file string) string {
	return fmt.Sprintf("%s of Secret %s/%s", file, k.secret.Namespace, k.secret.Name)
}
